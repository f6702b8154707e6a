#include "gallop/kernel/cuda/launcher.h"

#include <utility>

namespace gallop::kernel {

namespace {

std::shared_ptr<CudaLauncher>& chosen() {
  static std::shared_ptr<CudaLauncher> launcher;
  return launcher;
}

}  // namespace

std::string cuda_kernel_of(const char* name, c10::ScalarType format) {
  switch (format) {
    case c10::kBFloat16: return std::string(name) + "_bf16";
    case c10::kHalf: return std::string(name) + "_fp16";
    default: return std::string(name) + "_fp32";
  }
}

std::shared_ptr<CudaLauncher> set_cuda_launcher(std::shared_ptr<CudaLauncher> launcher) {
  return std::exchange(chosen(), std::move(launcher));
}

CudaLauncher* cuda_launcher_for(c10::Device device) {
  CudaLauncher* launcher = chosen().get();
  return launcher != nullptr && device.is_cuda() && launcher->can_launch(device) ? launcher
                                                                                 : nullptr;
}

}  // namespace gallop::kernel
