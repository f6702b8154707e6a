#pragma once

namespace gallop::tune {

/// The variant of a function for the best instruction set of this machine. `avx512` may use the
/// instructions of AVX-512 F, DQ and VL.
template <typename Function>
Function best_variant(Function plain, [[maybe_unused]] Function avx2,
                      [[maybe_unused]] Function avx512) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    return avx512;
  }
  if (__builtin_cpu_supports("avx2")) return avx2;
#endif
  return plain;
}

}  // namespace gallop::tune
