#include "gallop/kernel/isa.h"

namespace gallop::kernel {

bool has(Isa isa) {
  switch (isa) {
    case Isa::kBaseline: return true;
#if defined(__x86_64__)
    case Isa::kAvx2: return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case Isa::kAvx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#endif
    default: return false;
  }
}

Isa best_isa() {
  static const Isa kBest = has(Isa::kAvx512) ? Isa::kAvx512
                           : has(Isa::kAvx2) ? Isa::kAvx2
                                             : Isa::kBaseline;
  return kBest;
}

}  // namespace gallop::kernel
