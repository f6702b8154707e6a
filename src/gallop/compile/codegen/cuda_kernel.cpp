#include "gallop/compile/codegen/cuda_kernel.h"

#include <chrono>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/compile/codegen/cuda_source.h"

namespace gallop::compile {

namespace {

// The size of a kernel's arguments that all drivers support.
constexpr size_t kMostSlots = 4096 / sizeof(uint64_t);

std::string kernel_fallback(const std::string& reason) {
  return "the step falls back to unfused operators: " + reason;
}

}  // namespace

std::unique_ptr<CudaKernel> CudaKernel::make(const LoopProgram& program, CudaCompiler& compiler,
                                             int device, const std::string& driver) {
  auto kernel = std::make_unique<CudaKernel>();
  kernel->plan_ = cuda_plan(program);
  kernel->device_ = device;
  const KernelSource source = cuda_source(kernel->plan_);
  kernel->symbol_ = source.symbol;
  std::string missing;
  auto opened = CudaDriver::open(missing, driver);
  if (opened) {
    try {
      kernel->binary_ = compiler.submit({source}, opened->capability(device))[0];
      kernel->driver_ = std::move(opened);
    } catch (const DeviceError& error) {
      missing = error.what();
    }
  }
  if (!missing.empty()) kernel->fallback_reason_ = kernel_fallback(missing);
  return kernel;
}

bool CudaKernel::is_done() const {
  return !driver_ || binary_.wait_for(std::chrono::seconds(0)) == std::future_status::ready;
}

bool CudaKernel::load() {
  if (driver_) std::call_once(once_, [this] { load_once(); });
  return plain_ != nullptr;
}

void CudaKernel::load_once() {
  const CudaBinary& binary = binary_.get();
  fallback_reason_ = binary.fallback_reason;
  if (binary.image.empty()) return;
  if (CudaSlots(plan_).count > kMostSlots) {
    fallback_reason_ = kernel_fallback("it has more arguments than a kernel may have");
    return;
  }
  try {
    module_ = driver_->load(binary.image, device_);
    if (plan_.width > 1) aligned_ = driver_->find(module_, symbol_ + "_aligned");
    if (!plan_.loop.column_reductions.empty()) {
      columns_ = driver_->find(module_, symbol_ + "_columns");
    }
    if (!plan_.loop.totals.empty()) totals_ = driver_->find(module_, symbol_ + "_totals");
    plain_ = driver_->find(module_, symbol_);
  } catch (const DeviceError& error) {
    fallback_reason_ = kernel_fallback(error.what());
  }
}

void CudaKernel::launch(const std::vector<const void*>& inputs, const std::vector<void*>& outputs,
                        void* totals, void* stream) const {
  if (plain_ == nullptr) throw InternalError("loop kernel: it is not loaded: " + fallback_reason_);
  auto slots = cuda_arguments(plan_, inputs, outputs, totals);
  void* main = is_aligned(plan_, inputs, outputs) ? aligned_ : plain_;
  driver_->launch(device_, main, plan_.grid, plan_.block, stream, slots);
  if (columns_ != nullptr) {
    driver_->launch(device_, columns_, {plan_.last_grid, 1}, plan_.last_block, stream, slots);
  }
  if (totals_ != nullptr) {
    driver_->launch(device_, totals_, {1, 1}, {plan_.total_block, 1}, stream, slots);
  }
}

}  // namespace gallop::compile
