#pragma once

#include <cstdint>

namespace gallop::kernel {

/// Instruction sets that the CPU kernels are compiled for.
enum class Isa : uint8_t {
  kBaseline,    ///< What every machine of the architecture has.
  kAvx2,        ///< With FMA.
  kAvx512,      ///< F, BW, DQ and VL.
  kAvx512Bf16,  ///< With conversions to bf16, and sums of products of its pairs.
  kAmx,         ///< With AMX, tiles of bf16.
};

/// Whether this machine has it.
bool has(Isa isa);

/// The best that this machine has, or the one that GALLOP_ISA names ("baseline", "avx2", "avx512",
/// "avx512-bf16", "amx") where that is less. The kernels use it.
Isa best_isa();

/// Whether Gallop's kernels may be used: false if GALLOP_KERNELS is "stock", which leaves all work
/// to LibTorch's operators. Throws UsageError for any other value.
bool kernels_enabled();

}  // namespace gallop::kernel
