#include "gallop/kernel/isa.h"

#include <array>
#include <cstdlib>
#include <string_view>
#include <utility>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/kernel/stock_operators.h"

namespace gallop::kernel {

namespace {

constexpr std::array<std::pair<Isa, std::string_view>, 5> kNames = {
    {{Isa::kBaseline, "baseline"},
     {Isa::kAvx2, "avx2"},
     {Isa::kAvx512, "avx512"},
     {Isa::kAvx512Bf16, "avx512-bf16"},
     {Isa::kAmx, "amx"}}};

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
    case Isa::kAvx512Bf16: return has(Isa::kAvx512) && __builtin_cpu_supports("avx512bf16");
    case Isa::kAmx: {
      static const bool kHas = has(Isa::kAvx512Bf16) && has_tiles();
      return kHas;
    }
#endif
    default: return false;
  }
}

Isa best_isa() {
  static const Isa kBest = [] {
    const char* wanted = std::getenv("GALLOP_ISA");
    const std::string_view limit = wanted == nullptr ? kNames.back().second : wanted;
    Isa best = Isa::kBaseline;
    for (const auto& [isa, name] : kNames) {
      if (has(isa)) best = isa;
      if (name == limit) return best;
    }
    throw UsageError(fmt::format(
        "GALLOP_ISA is '{}', but must be baseline, avx2, avx512, avx512-bf16 or amx", limit));
  }();
  return kBest;
}

namespace {

thread_local bool in_stock_scope = false;

}  // namespace

StockOperatorsScope::StockOperatorsScope() : before_(in_stock_scope) { in_stock_scope = true; }
StockOperatorsScope::~StockOperatorsScope() { in_stock_scope = before_; }
bool StockOperatorsScope::is_there() { return in_stock_scope; }

bool kernels_enabled() {
  if (in_stock_scope) return false;
  static const bool kEnabled = [] {
    const char* choice = std::getenv("GALLOP_KERNELS");
    if (choice == nullptr || *choice == '\0') return true;
    if (std::string_view(choice) == "stock") return false;
    throw UsageError(fmt::format(
        "GALLOP_KERNELS is '{}', but must be stock, which disables Gallop's kernels, or unset",
        choice));
  }();
  return kEnabled;
}

}  // namespace gallop::kernel
