#pragma once

#include "gallop/kernel/isa.h"

namespace gallop::kernel {

/// A struct of functions that a source of this folder fills for the Isa it is compiled for.
template <typename Bodies, Isa>
Bodies make_bodies();

/// Those for an Isa that this machine has.
template <typename Bodies>
Bodies bodies_of(Isa isa) {
#if defined(__x86_64__)
  if (isa == Isa::kAmx) return make_bodies<Bodies, Isa::kAmx>();
  if (isa == Isa::kAvx512Bf16) return make_bodies<Bodies, Isa::kAvx512Bf16>();
  if (isa == Isa::kAvx512) return make_bodies<Bodies, Isa::kAvx512>();
  if (isa == Isa::kAvx2) return make_bodies<Bodies, Isa::kAvx2>();
#endif
  return make_bodies<Bodies, Isa::kBaseline>();
}

template <typename Bodies>
const Bodies& best_bodies() {
  static const Bodies kBodies = bodies_of<Bodies>(best_isa());
  return kBodies;
}

}  // namespace gallop::kernel
