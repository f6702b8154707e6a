#pragma once

// What every kernel of this folder is given; for NVRTC too, hence without includes.
namespace gallop::kernel {

inline constexpr unsigned kCudaThreads = 256;  ///< Of a block.
inline constexpr unsigned kCudaSlots = 512;

/// The only argument: addresses, and numbers as their bits.
struct KernelSlots {
  unsigned long long slots[kCudaSlots];
};

}  // namespace gallop::kernel
