#pragma once

#include <memory>
#include <optional>
#include <string>

#include <c10/core/Device.h>

namespace gallop::kernel {
class CudaLauncher;
}

namespace gallop::app {

struct DeviceChoice {
  c10::Device device;
  std::string note;  ///< Why "auto" leaves a GPU that is here alone; else empty.
};

/// The device that `train.device` names: "cpu"; "cuda" loads LibTorch's CUDA library, which needs a
/// GPU and its driver, and throws DeviceError where that fails; "auto" takes a GPU where there is
/// one that works. A GPU becomes this thread's current one.
DeviceChoice choose_device(const std::string& name);

/// The compute capability of a GPU, 90 for 9.0; nothing for the CPU. Throws DeviceError where the
/// driver does not tell.
std::optional<int> capability_of(c10::Device device);

/// Has a GPU compute with our kernels for as long as this lives, where it can have them.
class GpuKernels {
 public:
  explicit GpuKernels(c10::Device device);
  ~GpuKernels();
  GpuKernels(const GpuKernels&) = delete;
  GpuKernels& operator=(const GpuKernels&) = delete;

  /// Why it cannot have them, in one line; else empty.
  const std::string& fallback_reason() const { return fallback_reason_; }

 private:
  bool is_set_ = false;
  std::shared_ptr<kernel::CudaLauncher> before_;
  std::string fallback_reason_;
};

}  // namespace gallop::app
