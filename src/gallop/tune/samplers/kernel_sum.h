#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gallop::tune {

/// A mixture of products of kernels, by columns with one item for each kernel.
///
/// The kernel k at a query has the density weights[k] * exp(constants[k] - sum over bells of
/// ((at - centers[k]) * scales[k])^2 + sum over tables of table[rows[k]]).
struct KernelColumns {
  struct Bell {
    const double* centers;
    const double* scales;  ///< 1 / (sqrt(2) * deviation).
  };

  size_t count = 0;
  const double* weights = nullptr;
  const double* constants = nullptr;
  std::vector<Bell> bells{};
  std::vector<const int32_t*> rows{};
};

/// Where the density is wanted: a number for each bell, and a table for each list of rows.
struct KernelQuery {
  std::vector<double> at{};
  std::vector<std::vector<double>> tables{};
};

/// A mixture with kernels that are equal made one.
class MergedKernels {
 public:
  /// Of kernels whose constants are 0. False, and nothing is changed, where they have bells, of
  /// which hardly any are equal, or where so many combinations of rows are possible that merging
  /// would spare little.
  bool merge(const KernelColumns& columns);
  /// Those of the last merge.
  KernelColumns columns() const;

 private:
  std::vector<double> weights_, constants_;
  std::vector<std::vector<int32_t>> rows_;
};

/// The logarithm of the density at each query, to about 1e-13; the same on every machine.
std::vector<double> log_densities(const KernelColumns& columns,
                                  std::span<const KernelQuery> queries);

}  // namespace gallop::tune
