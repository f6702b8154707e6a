#pragma once

// Dropout on a GPU, with the numbers of the CPU's kernel (kernel/cpu/dropout.h). Behind
// loop_cuda.h, kernel_cuda.h, philox_cuda.h and dropout_slots.h.

namespace gallop_cuda {

// A thread has one counter, which decides over 8 numbers of a group, 16 apart.
template <typename T>
__device__ inline void dropout(const KernelSlots& a) {
  using Slot = gallop::kernel::DropoutSlot;
  const T* const x = address<const T>(a, Slot::kX);
  T* const y = address<T>(a, Slot::kY);
  const Int64 count = static_cast<Int64>(a.slots[Slot::kCount]);
  const auto* const state = address<const unsigned long long>(a, Slot::kSeedAndStep);
  const unsigned long long seed = state[0], step = state[1];
  float threshold = static_cast<float>(number(a, Slot::kThreshold));
  float scale = static_cast<float>(number(a, Slot::kScale));
  if (const auto* const share = address<const float>(a, Slot::kShare)) {
    // dropout_share() of kernel/dropout.h.
    const double most = op_floor(static_cast<double>(*share) * 65536 + 0.5);
    threshold = static_cast<float>(most < 65535 ? most : 65535);
    scale = static_cast<float>(65536 / (65536 - static_cast<double>(threshold)));
  }
  const Int64 counters = (count + 127) / 128 * 16, all = static_cast<Int64>(gridDim.x) * blockDim.x;
  for (Int64 at = static_cast<Int64>(blockIdx.x) * blockDim.x + threadIdx.x; at < counters;
       at += all) {
    unsigned words[4] = {static_cast<unsigned>(at), static_cast<unsigned>(a.slots[Slot::kCall]),
                         static_cast<unsigned>(step), static_cast<unsigned>(step >> 32)};
    philox4x32(static_cast<unsigned>(seed),
               static_cast<unsigned>(seed >> 32) ^ static_cast<unsigned>(a.slots[Slot::kPurpose]),
               words);
    const Int64 first = at / 16 * 128 + at % 16;
#pragma unroll
    for (int v = 0; v < 8; ++v) {
      const Int64 i = first + 16 * v;
      if (i >= count) break;
      const unsigned word = words[v / 2];
      const float bits = static_cast<float>(v % 2 == 0 ? word & 0xffffU : word >> 16);
      write(y[i], bits >= threshold ? read(x[i]) * scale : 0.0F);
    }
  }
}

GALLOP_CUDA_KERNELS(gallop_dropout, dropout)

}  // namespace gallop_cuda
