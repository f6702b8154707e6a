#include "gallop/kernel/cuda/launcher.h"

#include <utility>

namespace gallop::kernel {

namespace {

std::shared_ptr<CudaLauncher>& chosen() {
  static std::shared_ptr<CudaLauncher> launcher;
  return launcher;
}

}  // namespace

void set_cuda_launcher(std::shared_ptr<CudaLauncher> launcher) { chosen() = std::move(launcher); }

CudaLauncher* cuda_launcher_for(c10::Device device) {
  CudaLauncher* launcher = chosen().get();
  return launcher != nullptr && device.is_cuda() && launcher->can_launch(device) ? launcher
                                                                                 : nullptr;
}

}  // namespace gallop::kernel
