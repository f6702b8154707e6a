#include "gallop/tune/samplers/normal_masses.h"

#include "gallop/tune/best_variant.h"
#include "gallop/tune/samplers/vector_math.h"

namespace gallop::tune {

namespace {

[[gnu::always_inline]] inline double log_mass_here(double low, double high) {
  // The lower tail is more precise: from here on, low <= 0 or high <= 0.
  const bool is_above = low > 0;
  const double a = is_above ? -high : low, b = is_above ? -low : high;
  const double beyond_a = erfc_of_positive(a < 0 ? -a : a),
               beyond_b = erfc_of_positive(b < 0 ? -b : b);
  const double below_b = b > 0 ? 2 - beyond_b : beyond_b;
  const double mass = 0.5 * (below_b - beyond_a);
  return log_of_positive(mass > 1e-300 ? mass : 1e-300);
}

[[gnu::always_inline]] inline void log_masses_here(const NormalColumns& normals, double low,
                                                   double high, double* masses) {
  for (size_t i = 0; i < normals.count; ++i) {
    masses[i] = log_mass_here((low - normals.centers[i]) * normals.scales[i],
                              (high - normals.centers[i]) * normals.scales[i]);
  }
}

// One copy per instruction set, as in kernel_sum.cpp.
void log_masses_plain(const NormalColumns& normals, double low, double high, double* masses) {
  log_masses_here(normals, low, high, masses);
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void log_masses_avx2(const NormalColumns& normals, double low, double high,
                                             double* masses) {
  log_masses_here(normals, low, high, masses);
}

[[gnu::target("avx512f,avx512dq,avx512vl,prefer-vector-width=512")]] void log_masses_avx512(
    const NormalColumns& normals, double low, double high, double* masses) {
  log_masses_here(normals, low, high, masses);
}
#else
constexpr auto log_masses_avx2 = log_masses_plain, log_masses_avx512 = log_masses_plain;
#endif

}  // namespace

void log_masses(const NormalColumns& normals, double low, double high, double* masses) {
  static const auto kBest = best_variant(log_masses_plain, log_masses_avx2, log_masses_avx512);
  kBest(normals, low, high, masses);
}

}  // namespace gallop::tune
