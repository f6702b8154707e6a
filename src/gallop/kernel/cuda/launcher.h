#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include "gallop/kernel/cuda/kernel_slots.h"

namespace gallop::kernel {

/// A launch of a kernel that is written in CUDA C++.
struct CudaLaunch {
  const char* text;             ///< The header with it, as in #include, such as kDropoutText.
  std::string part{};           ///< Its part, if those of the text are compiled separately.
  std::string kernel;           ///< Its name there.
  uint32_t blocks = 1;          ///< Of kCudaThreads each.
  c10::Device device;           ///< Launched on its current stream.
  std::vector<uint64_t> slots;  ///< kCudaSlots values: the only argument, KernelSlots.
};

inline constexpr const char* kCrossEntropyText = "gallop/kernel/cuda/cross_entropy_cuda.h";
inline constexpr const char* kDropoutText = "gallop/kernel/cuda/dropout_cuda.h";
inline constexpr const char* kUpdateText = "gallop/kernel/cuda/update_cuda.h";

/// The name of the kernel for fp32, bf16 or fp16, among those that GALLOP_CUDA_KERNELS defines.
std::string cuda_kernel_of(const char* name, c10::ScalarType format);

/// Compiles the sources in this folder for a GPU when they are first needed, and launches their
/// kernels. Does not synchronize with the GPU, and does not allocate memory on it.
class CudaLauncher {
 public:
  virtual ~CudaLauncher() = default;
  /// Whether the device can run the kernels. Compiles them on the first call.
  virtual bool can_launch(c10::Device device) = 0;
  /// Launches a kernel. Throws DeviceError.
  virtual void launch(const CudaLaunch& launch) = 0;
};

/// Sets the launcher that operators of this module use for tensors on a GPU; null (the default)
/// leaves them to LibTorch. Not thread-safe. Returns the previous one.
std::shared_ptr<CudaLauncher> set_cuda_launcher(std::shared_ptr<CudaLauncher> launcher);
/// The launcher; null if there is none, or if the device cannot run the kernels.
CudaLauncher* cuda_launcher_for(c10::Device device);

}  // namespace gallop::kernel
