#pragma once

#include <cstdint>
#include <vector>

// Statistics of numbers and transforms by them, as in scikit-learn and NumPy.
namespace gallop::data {

/// Mean and standard deviation (of the population).
struct MeanDeviation {
  double mean = 0, deviation = 1;  ///< The deviation of equal values is 1.
};
MeanDeviation mean_deviation(const std::vector<double>& values);

/// The quantiles at 0, 1 / (count - 1), ..., 1, interpolated linearly as numpy.quantile() does.
/// `sorted` must be ascending and not empty.
std::vector<double> quantiles_of(const std::vector<double>& sorted, int64_t count);
/// The quantile at 1/2.
double median_of(std::vector<double> values);

/// The x of which a share `p` in (0, 1) of a standard normal distribution is below.
double normal_quantile(double p);

/// Maps a value to the standard normal distribution by the quantiles of a column, as scikit-learn's
/// QuantileTransformer with output_distribution="normal".
double quantile_transform(double value, const std::vector<double>& quantiles);

/// Boundaries of at most `count` bins with about equally many values, without duplicates (as
/// rtdl_num_embeddings.compute_bins()). Of equal values none.
std::vector<double> bins_of(std::vector<double> values, int64_t count);

}  // namespace gallop::data
