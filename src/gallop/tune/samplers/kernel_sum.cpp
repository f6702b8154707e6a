#include "gallop/tune/samplers/kernel_sum.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "gallop/tune/best_variant.h"
#include "gallop/tune/samplers/vector_math.h"

namespace gallop::tune {

namespace {

// Kernels per block, so that a block stays in the cache for all queries.
constexpr size_t kBlock = 256;
// Number of lanes of sums and maxima, at least as wide as any vector unit, so that every machine
// adds in the same order.
constexpr size_t kLanes = 8;
constexpr double kLowest = -std::numeric_limits<double>::infinity();

using Block = std::array<double, kBlock>;
using Lanes = std::array<double, kLanes>;

// A running log-sum-exp: exp(largest) times the sum of the lanes.
struct Sum {
  double largest = kLowest;
  Lanes lanes{};
};

// The log-densities of a block of kernels from `first` on; padded with kLowest.
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

// One copy per instruction set. Dispatched by hand, as target_clones resolves before a sanitizer's
// runtime is initialized.
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
#else
constexpr auto add_avx2 = add_plain, add_avx512 = add_plain;
#endif

double logarithm_of(const Sum& sum) {
  double total = 0;
  for (const double lane : sum.lanes) total += lane;
  return sum.largest + std::log(total);
}

}  // namespace

bool MergedKernels::merge(const KernelColumns& columns) {
  if (!columns.bells.empty()) return false;
  std::vector<size_t> sizes;
  size_t combinations = 1;
  for (const int32_t* const rows : columns.rows) {
    sizes.push_back(static_cast<size_t>(*std::max_element(rows, rows + columns.count)) + 1);
    combinations *= sizes.back();
    if (combinations > columns.count / 2) return false;
  }
  std::vector<double> sums(combinations, 0.0);
  for (size_t k = 0; k < columns.count; ++k) {
    size_t combination = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      combination = combination * sizes[i] + static_cast<size_t>(columns.rows[i][k]);
    }
    sums[combination] += columns.weights[k];
  }
  weights_.clear();
  rows_.assign(sizes.size(), {});
  for (size_t combination = 0; combination < combinations; ++combination) {
    if (sums[combination] == 0) continue;
    weights_.push_back(sums[combination]);
    size_t rest = combination;
    for (size_t i = sizes.size(); i-- > 0; rest /= sizes[i]) {
      rows_[i].push_back(static_cast<int32_t>(rest % sizes[i]));
    }
  }
  constants_.assign(weights_.size(), 0.0);
  return true;
}

KernelColumns MergedKernels::columns() const {
  KernelColumns columns{
      .count = weights_.size(), .weights = weights_.data(), .constants = constants_.data()};
  for (const std::vector<int32_t>& rows : rows_) columns.rows.push_back(rows.data());
  return columns;
}

std::vector<double> log_densities(const KernelColumns& columns,
                                  std::span<const KernelQuery> queries) {
  static const auto kAdd = best_variant(add_plain, add_avx2, add_avx512);
  std::vector<Sum> sums(queries.size());
  kAdd(columns, queries, sums.data());
  std::vector<double> densities;
  densities.reserve(sums.size());
  for (const Sum& sum : sums) densities.push_back(logarithm_of(sum));
  return densities;
}

}  // namespace gallop::tune
