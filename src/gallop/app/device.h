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
  std::string note;  ///< Why "auto" does not use an existing GPU; else empty.
};

/// The device that `train.device` selects: "cpu"; "cuda" loads LibTorch's CUDA library, which needs
/// a GPU and its driver, and throws DeviceError if that fails; "auto" takes a GPU if there is a
/// working one. A GPU becomes the current one of this thread. `deterministic` is
/// `train.deterministic`.
DeviceChoice choose_device(const std::string& name, const std::string& deterministic = "true");

/// The compute capability of a GPU, 90 for 9.0; nothing for the CPU. Throws DeviceError if the
/// driver does not report it.
std::optional<int> capability_of(c10::Device device);

/// While it lives, a GPU uses Gallop's kernels, if it supports them.
class GpuKernels {
 public:
  explicit GpuKernels(c10::Device device);
  ~GpuKernels();
  GpuKernels(const GpuKernels&) = delete;
  GpuKernels& operator=(const GpuKernels&) = delete;

  /// Why it does not support them, in one line; else empty.
  const std::string& fallback_reason() const { return fallback_reason_; }

 private:
  bool is_set_ = false;
  std::shared_ptr<kernel::CudaLauncher> before_;
  std::string fallback_reason_;
};

}  // namespace gallop::app
