#include "gallop/track/system/nvml.h"

#include <cstdint>

#include "gallop/base/library.h"

namespace gallop::track {

namespace {

constexpr int kSuccess = 0;
constexpr unsigned kGpuSensor = 0;
constexpr double kPercent = 0.01, kMilli = 1e-3;

struct Utilization {
  unsigned gpu, memory;  // Percent.
};
struct Memory {
  unsigned long long total, free, used;  // NOLINT(google-runtime-int): as NVML has it
};

}  // namespace

struct Nvml::Functions {
  std::shared_ptr<void> library;
  int (*init)() = nullptr;
  int (*shutdown)() = nullptr;
  int (*count)(unsigned*) = nullptr;
  int (*handle)(unsigned, void**) = nullptr;
  int (*utilization)(void*, Utilization*) = nullptr;
  int (*memory)(void*, Memory*) = nullptr;
  int (*power)(void*, unsigned*) = nullptr;                  // Milliwatts.
  int (*temperature)(void*, unsigned, unsigned*) = nullptr;  // Celsius.
  int (*energy)(void*, unsigned long long*) = nullptr;  // NOLINT(google-runtime-int): millijoules
};

Nvml::Nvml(const fs::path& library) {
  auto functions = std::make_unique<Functions>();
  std::string ignored;
  functions->library = load_library(library, ignored);
  if (!functions->library) return;
  FunctionFinder finder(functions->library.get());
  finder.find(functions->init, "nvmlInit_v2");
  finder.find(functions->shutdown, "nvmlShutdown");
  finder.find(functions->count, "nvmlDeviceGetCount_v2");
  finder.find(functions->handle, "nvmlDeviceGetHandleByIndex_v2");
  finder.find(functions->utilization, "nvmlDeviceGetUtilizationRates");
  finder.find(functions->memory, "nvmlDeviceGetMemoryInfo");
  finder.find(functions->power, "nvmlDeviceGetPowerUsage");
  finder.find(functions->temperature, "nvmlDeviceGetTemperature");
  finder.find(functions->energy, "nvmlDeviceGetTotalEnergyConsumption");
  if (!finder.missing().empty() || functions->init() != kSuccess) return;
  functions_ = std::move(functions);
  unsigned count = 0;
  if (functions_->count(&count) != kSuccess) return;
  for (unsigned i = 0; i < count; ++i) {
    void* gpu = nullptr;
    if (functions_->handle(i, &gpu) == kSuccess) gpus_.push_back(gpu);
  }
}

Nvml::~Nvml() {
  if (functions_) functions_->shutdown();
}

std::vector<GpuReading> Nvml::read() const {
  std::vector<GpuReading> readings;
  for (void* gpu : gpus_) {
    GpuReading& one = readings.emplace_back();
    Utilization utilization{};
    Memory memory{};
    unsigned number = 0;
    unsigned long long energy = 0;  // NOLINT(google-runtime-int): as NVML has it
    if (functions_->utilization(gpu, &utilization) == kSuccess) {
      one.use = utilization.gpu * kPercent;
    }
    if (functions_->memory(gpu, &memory) == kSuccess) {
      one.memory_bytes = static_cast<double>(memory.used);
    }
    if (functions_->power(gpu, &number) == kSuccess) one.watts = number * kMilli;
    if (functions_->temperature(gpu, kGpuSensor, &number) == kSuccess) one.celsius = number;
    if (functions_->energy(gpu, &energy) == kSuccess) {
      one.joules = static_cast<double>(energy) * kMilli;
    }
  }
  return readings;
}

}  // namespace gallop::track
