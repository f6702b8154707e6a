#pragma once

#include <cstdint>

namespace gallop::kernel {

/// Instruction sets that the CPU kernels are compiled for.
enum class Isa : uint8_t {
  kBaseline,  ///< What every machine of the architecture has.
  kAvx2,      ///< With FMA.
  kAvx512,    ///< F, BW, DQ and VL.
  kAmx,       ///< AVX-512 and AMX, tiles of bf16.
};

/// Whether this machine has it.
bool has(Isa isa);

/// The best that this machine has. The kernels use it.
Isa best_isa();

}  // namespace gallop::kernel
