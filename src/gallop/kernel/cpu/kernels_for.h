#pragma once

#include "gallop/kernel/isa.h"

namespace gallop::kernel {

/// A struct of functions, defined by a source of this folder for the Isa it is compiled for.
template <typename Kernels, Isa>
Kernels make_kernels();

/// The functions for an Isa that this machine supports.
template <typename Kernels>
Kernels kernels_for(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAmx) return make_kernels<Kernels, Isa::kAmx>();
  if (isa == Isa::kAvx512Bf16) return make_kernels<Kernels, Isa::kAvx512Bf16>();
  if (isa == Isa::kAvx512) return make_kernels<Kernels, Isa::kAvx512>();
  if (isa == Isa::kAvx2) return make_kernels<Kernels, Isa::kAvx2>();
#endif
  return make_kernels<Kernels, Isa::kBaseline>();
}

template <typename Kernels>
const Kernels& best_kernels() {
  static const Kernels kKernels = kernels_for<Kernels>(best_isa());
  return kKernels;
}

}  // namespace gallop::kernel
