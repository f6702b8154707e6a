#pragma once

// How the kernels of this folder are declared. Behind loop_cuda.h and kernel_slots.h.

namespace gallop_cuda {

using gallop::kernel::kCudaThreads;
using gallop::kernel::KernelSlots;

}  // namespace gallop_cuda

/// A kernel, in gallop_cuda, that reads `a`; its body follows.
#define GALLOP_CUDA_KERNEL(name)                             \
  extern "C" __global__ void __launch_bounds__(kCudaThreads) \
      name(const __grid_constant__ KernelSlots a)

/// Kernels name_fp32, name_bf16 and name_fp16, which are body<T>(a); see cuda_kernel_of().
#define GALLOP_CUDA_KERNELS(name, body)               \
  GALLOP_CUDA_KERNEL(name##_fp32) { body<float>(a); } \
  GALLOP_CUDA_KERNEL(name##_bf16) { body<Bf16>(a); }  \
  GALLOP_CUDA_KERNEL(name##_fp16) { body<Fp16>(a); }
