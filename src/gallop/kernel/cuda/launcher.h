#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <c10/core/Device.h>

namespace gallop::kernel {

/// A start of a kernel that is written in CUDA C++.
struct CudaLaunch {
  const char* text;     ///< The header with it, as in #include, such as kDropoutText.
  const char* kernel;   ///< Its name there.
  uint32_t blocks = 1;  ///< Of kCudaThreads each.
  c10::Device device;   ///< On its current stream.
  /// The only argument, a struct of kCudaSlots: addresses, and numbers as their bits.
  std::vector<uint64_t> slots;
};

inline constexpr uint32_t kCudaThreads = 256;
inline constexpr size_t kCudaSlots = 512;

inline constexpr const char* kCrossEntropyText = "gallop/kernel/cuda/cross_entropy_cuda.h";
inline constexpr const char* kDropoutText = "gallop/kernel/cuda/dropout_cuda.h";
inline constexpr const char* kUpdateText = "gallop/kernel/cuda/update_cuda.h";

/// Compiles the texts in this folder for a GPU when they are first needed, and starts their
/// kernels. Never waits for the GPU, and takes no memory of it.
class CudaLauncher {
 public:
  virtual ~CudaLauncher() = default;
  /// Whether the device can have the kernels. Compiles them where that has not been tried.
  virtual bool can_launch(c10::Device device) = 0;
  /// Throws DeviceError.
  virtual void launch(const CudaLaunch& launch) = 0;
};

/// The one that operators of this module use for tensors on a GPU; null (as at first) leaves them
/// to LibTorch. Not to be changed while others compute.
void set_cuda_launcher(std::shared_ptr<CudaLauncher> launcher);
/// Null where there is none, or the device cannot have the kernels.
CudaLauncher* cuda_launcher_for(c10::Device device);

}  // namespace gallop::kernel
