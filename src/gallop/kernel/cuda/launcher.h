#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include "gallop/kernel/cuda/kernel_slots.h"

namespace gallop::kernel {

/// A start of a kernel that is written in CUDA C++.
struct CudaLaunch {
  const char* text;             ///< The header with it, as in #include, such as kDropoutText.
  std::string part{};           ///< Of a text in parts that are compiled apart: the one with it.
  std::string kernel;           ///< Its name there.
  uint32_t blocks = 1;          ///< Of kCudaThreads each.
  c10::Device device;           ///< On its current stream.
  std::vector<uint64_t> slots;  ///< kCudaSlots of them: the only argument, KernelSlots.
};

inline constexpr const char* kCrossEntropyText = "gallop/kernel/cuda/cross_entropy_cuda.h";
inline constexpr const char* kDropoutText = "gallop/kernel/cuda/dropout_cuda.h";
inline constexpr const char* kUpdateText = "gallop/kernel/cuda/update_cuda.h";

/// The kernel for numbers in fp32, bf16 or fp16 among those that GALLOP_CUDA_KERNELS names.
std::string cuda_kernel_of(const char* name, c10::ScalarType format);

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
/// to LibTorch. Not to be changed while others compute. Returns the one before.
std::shared_ptr<CudaLauncher> set_cuda_launcher(std::shared_ptr<CudaLauncher> launcher);
/// Null where there is none, or the device cannot have the kernels.
CudaLauncher* cuda_launcher_for(c10::Device device);

}  // namespace gallop::kernel
