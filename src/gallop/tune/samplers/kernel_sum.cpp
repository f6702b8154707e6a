#include "gallop/tune/samplers/kernel_sum.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace gallop::tune {

namespace {

// Kernels that are taken at once, so that their columns stay in the cache for all queries.
constexpr size_t kBlock = 256;
// Sums and largest numbers are taken in so many lanes, which no vector unit is wider than, so that
// every machine adds in the same order.
constexpr size_t kLanes = 8;
constexpr double kLowest = -std::numeric_limits<double>::infinity();

using Block = std::array<double, kBlock>;
using Lanes = std::array<double, kLanes>;

// A sum of exponentials as it grows: exp(largest) times the sum of the lanes.
struct Sum {
  double largest = kLowest;
  Lanes lanes{};
};

// 1 / 12!, 1 / 11! ... 1 / 0!
constexpr std::array kSeries = [] {
  std::array<double, 13> series{};
  double factorial = 1;
  for (size_t i = 0; i < series.size(); ++i) {
    series[series.size() - 1 - i] = 1 / factorial;
    factorial *= static_cast<double>(i + 1);
  }
  return series;
}();

// exp for x <= 0, to 2e-16 of it; 1e-261 for what is smaller, as processors are slow with numbers
// below 1e-308. In a form that compilers vectorize.
[[gnu::always_inline]] inline double exp_of_negative(double x) {
  constexpr double kLog2E = 1.4426950408889634, kLn2High = 6.93147180369123816490e-01,
                   kLn2Low = 1.90821492927058770002e-10;
  constexpr double kRound = 0x1.8p52;  // Adding it leaves a whole number in the low bits.
  x = x > -600 ? x : -600;
  const double shifted = x * kLog2E + kRound;
  const double power = shifted - kRound;
  const double r = x - power * kLn2High - power * kLn2Low;
  double series = kSeries[0];
  for (size_t i = 1; i < kSeries.size(); ++i) series = series * r + kSeries[i];
  const uint64_t exponent = (std::bit_cast<uint64_t>(shifted) << 52) + (uint64_t{1023} << 52);
  return series * std::bit_cast<double>(exponent);
}

// Logarithms of the kernels from `first` on; kLowest behind the last.
[[gnu::always_inline]] inline void take_block(const KernelColumns& columns, size_t first,
                                              size_t count, const KernelQuery& query,
                                              Block& logarithms) {
  for (size_t k = 0; k < count; ++k) logarithms[k] = columns.constants[first + k];
  for (size_t k = count; k < kBlock; ++k) logarithms[k] = kLowest;
  for (size_t i = 0; i < columns.bells.size(); ++i) {
    const double* const centers = columns.bells[i].centers + first;
    const double* const scales = columns.bells[i].scales + first;
    const double at = query.at[i];
    for (size_t k = 0; k < count; ++k) {
      const double distance = (at - centers[k]) * scales[k];
      logarithms[k] -= distance * distance;
    }
  }
  for (size_t i = 0; i < columns.rows.size(); ++i) {
    const int32_t* const rows = columns.rows[i] + first;
    const double* const table = query.tables[i].data();
    for (size_t k = 0; k < count; ++k) logarithms[k] += table[rows[k]];
  }
}

[[gnu::always_inline]] inline double largest_of(const Block& logarithms) {
  Lanes lanes;
  lanes.fill(kLowest);
  for (size_t k = 0; k < kBlock; k += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      lanes[lane] = lanes[lane] > logarithms[k + lane] ? lanes[lane] : logarithms[k + lane];
    }
  }
  return *std::max_element(lanes.begin(), lanes.end());
}

[[gnu::always_inline]] inline void add_block(Block& logarithms, const Block& weights, Sum& sum) {
  const double largest = largest_of(logarithms);
  if (largest == kLowest) return;
  if (largest > sum.largest) {
    const double factor = std::exp(sum.largest - largest);
    for (double& lane : sum.lanes) lane *= factor;
    sum.largest = largest;
  }
  const double top = sum.largest;
  for (size_t k = 0; k < kBlock; ++k) {
    logarithms[k] = weights[k] * exp_of_negative(logarithms[k] - top);
  }
  for (size_t k = 0; k < kBlock; k += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) sum.lanes[lane] += logarithms[k + lane];
  }
}

[[gnu::always_inline]] inline void add_all(const KernelColumns& columns,
                                           std::span<const KernelQuery> queries, Sum* sums) {
  Block logarithms, weights;
  for (size_t first = 0; first < columns.count; first += kBlock) {
    const size_t count = std::min(kBlock, columns.count - first);
    weights.fill(0);
    std::copy_n(columns.weights + first, count, weights.begin());
    for (size_t i = 0; i < queries.size(); ++i) {
      take_block(columns, first, count, queries[i], logarithms);
      add_block(logarithms, weights, sums[i]);
    }
  }
}

// One copy for each kind of machine. Picked by hand, as target_clones resolves before a sanitizer's
// run time is up.
void add_plain(const KernelColumns& columns, std::span<const KernelQuery> queries, Sum* sums) {
  add_all(columns, queries, sums);
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void add_avx2(const KernelColumns& columns,
                                      std::span<const KernelQuery> queries, Sum* sums) {
  add_all(columns, queries, sums);
}

[[gnu::target("avx512f,avx512dq,avx512vl,prefer-vector-width=512")]] void add_avx512(
    const KernelColumns& columns, std::span<const KernelQuery> queries, Sum* sums) {
  add_all(columns, queries, sums);
}
#endif

using Add = void (*)(const KernelColumns&, std::span<const KernelQuery>, Sum*);

Add best_add() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl")) {
    return add_avx512;
  }
  if (__builtin_cpu_supports("avx2")) return add_avx2;
#endif
  return add_plain;
}

double logarithm_of(const Sum& sum) {
  double total = 0;
  for (const double lane : sum.lanes) total += lane;
  return sum.largest + std::log(total);
}

}  // namespace

std::vector<double> log_densities(const KernelColumns& columns,
                                  std::span<const KernelQuery> queries) {
  static const Add kAdd = best_add();
  std::vector<Sum> sums(queries.size());
  kAdd(columns, queries, sums.data());
  std::vector<double> densities;
  densities.reserve(sums.size());
  for (const Sum& sum : sums) densities.push_back(logarithm_of(sum));
  return densities;
}

}  // namespace gallop::tune
