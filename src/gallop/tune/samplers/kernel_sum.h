#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace gallop::tune {

/// A mixture of product kernels, in structure-of-arrays layout with one element per kernel.
///
/// The log-density of kernel k at a query is log(weights[k]) + constants[k] - sum over bells of
/// ((at - centers[k]) * scales[k])^2 + sum over tables of table[rows[k]].
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

/// A query point: a number for each bell, and a table for each list of rows.
struct KernelQuery {
  std::vector<double> at{};
  std::vector<std::vector<double>> tables{};
};

/// A mixture in which equal kernels are merged.
class MergedKernels {
 public:
  /// Merges kernels whose constants are 0. Returns false, without effect, if they have bells,
  /// hardly any of which are equal, or if too many combinations of rows are possible to save much.
  bool merge(const KernelColumns& columns);
  /// The columns of the last merge.
  KernelColumns columns() const;

 private:
  std::vector<double> weights_, constants_;
  std::vector<std::vector<int32_t>> rows_;
};

/// The log-density at each query, to about 1e-13; the same on every machine.
std::vector<double> log_densities(const KernelColumns& columns,
                                  std::span<const KernelQuery> queries);

}  // namespace gallop::tune
