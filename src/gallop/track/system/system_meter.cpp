#include "gallop/track/system/system_meter.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "gallop/base/clock.h"
#include "gallop/base/process_time.h"

namespace gallop::track {

namespace {

constexpr double kNano = 1e-9, kGiga = 1e9, kKibi = 1024;
constexpr double kWattsOfCore = 12, kWattsOfGigabyte = 0.3725;

// The number after a word at the beginning of a line; -1 if there is none.
double number_behind(const fs::path& file, const std::string& word) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with(word)) continue;
    double number = -1;
    std::istringstream(line.substr(word.size())) >> number;
    return number;
  }
  return -1;
}

double resident_bytes(const fs::path& proc) {
  double all = 0, resident = -1;
  std::ifstream(proc / "self/statm") >> all >> resident;
  return resident < 0 ? -1 : resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

}  // namespace

SystemMeter::SystemMeter(int processes, const SystemPlaces& places)
    : processes_(processes),
      proc_(places.proc),
      energy_(places.powercap),
      nvml_(places.nvml),
      last_(count()) {}

SystemMeter::Counters SystemMeter::count() const {
  Counters now{.seconds = monotonic_seconds(),
               .process_cpu = process_cpu_seconds(),
               .disk_read = number_behind(proc_ / "self/io", "read_bytes:"),
               .disk_written = number_behind(proc_ / "self/io", "write_bytes:"),
               .gpus = nvml_.read()};
  // user, nice, system, idle, iowait, irq, softirq, steal.
  std::array<double, 8> ticks{};
  std::ifstream stat(proc_ / "stat");
  std::string word;
  stat >> word;
  for (double& tick : ticks) stat >> tick;
  for (const double tick : ticks) now.all += tick;
  now.busy = now.all - ticks[3] - ticks[4];
  return now;
}

// Without an energy counter, a GPU's current power is assumed for the interval.
double SystemMeter::gpu_joules(const Counters& now, double seconds) const {
  double joules = 0;
  for (size_t i = 0; i < std::min(now.gpus.size(), last_.gpus.size()); ++i) {
    const GpuReading &before = last_.gpus[i], &after = now.gpus[i];
    if (before.joules >= 0 && after.joules >= before.joules) {
      joules += after.joules - before.joules;
    } else {
      joules += std::max(0.0, after.watts) * seconds;
    }
  }
  return joules;
}

SystemReading SystemMeter::read() {
  Counters now = count();
  SystemReading reading;
  const double seconds = std::max(now.seconds - last_.seconds, kNano);
  const double cores = (now.process_cpu - last_.process_cpu) / seconds;
  const double memory = resident_bytes(proc_);
  auto& values = reading.values;
  values["cpu"] = cores;
  if (now.all > last_.all) values["machine_cpu"] = (now.busy - last_.busy) / (now.all - last_.all);
  if (memory >= 0) values["memory_bytes"] = memory;
  const double total = number_behind(proc_ / "meminfo", "MemTotal:") * kKibi;
  const double available = number_behind(proc_ / "meminfo", "MemAvailable:") * kKibi;
  if (total > 0 && available >= 0) values["machine_memory"] = 1 - available / total;
  if (now.disk_read >= 0) values["disk_read"] = (now.disk_read - last_.disk_read) / seconds;
  if (now.disk_written >= 0) {
    values["disk_written"] = (now.disk_written - last_.disk_written) / seconds;
  }
  const double watts = kWattsOfCore * cores + kWattsOfGigabyte * std::max(0.0, memory) / kGiga;
  values["joules"] = (energy_.is_there() ? energy_.joules() : watts * seconds * processes_) +
                     gpu_joules(now, seconds);
  reading.energy_method = energy_.is_there() ? "rapl" : "estimated";
  if (!now.gpus.empty()) reading.energy_method += "+nvml";
  for (size_t i = 0; i < now.gpus.size(); ++i) {
    const GpuReading& gpu = now.gpus[i];
    const auto tell = [&](const char* name, double value) {
      if (value >= 0) values[fmt::format("gpu{}_{}", i, name)] = value;
    };
    tell("use", gpu.use);
    tell("memory_bytes", gpu.memory_bytes);
    tell("watts", gpu.watts);
    tell("celsius", gpu.celsius);
  }
  last_ = std::move(now);
  return reading;
}

}  // namespace gallop::track
