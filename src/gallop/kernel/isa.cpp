#include "gallop/kernel/isa.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace gallop::kernel {

namespace {

// Linux gives a process the large state of the tiles only if it asks.
bool may_use_tiles() {
#if defined(__x86_64__) && defined(__linux__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

// Bits 22 and 24 of EDX of leaf 7: AMX-BF16 and AMX-TILE.
bool has_tiles() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  constexpr unsigned kTileBits = 1U << 22 | 1U << 24;
  return (d & kTileBits) == kTileBits && may_use_tiles();
#else
  return false;
#endif
}

}  // namespace

bool has(Isa isa) {
  switch (isa) {
    case Isa::kBaseline: return true;
#if defined(__x86_64__)
    case Isa::kAvx2: return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    case Isa::kAvx512:
      return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
             __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    case Isa::kAmx: {
      static const bool kHas = has(Isa::kAvx512) && has_tiles();
      return kHas;
    }
#endif
    default: return false;
  }
}

Isa best_isa() {
  static const Isa kBest = has(Isa::kAmx)      ? Isa::kAmx
                           : has(Isa::kAvx512) ? Isa::kAvx512
                           : has(Isa::kAvx2)   ? Isa::kAvx2
                                               : Isa::kBaseline;
  return kBest;
}

}  // namespace gallop::kernel
