#include "gallop/data/table/scaling.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

namespace gallop::data {

namespace {

// Interpolates linearly between ascending points, of which those at equal x are a step.
// `reverses`: of equal points the other end is taken.
double interpolate(double x, const std::vector<double>& points, bool reverses) {
  const auto last = static_cast<double>(points.size() - 1);
  const auto above = reverses ? std::lower_bound(points.begin(), points.end(), x)
                              : std::upper_bound(points.begin(), points.end(), x);
  if (above == points.begin()) return 0;
  if (above == points.end()) return 1;
  const auto index = static_cast<double>(above - points.begin());
  const double low = *(above - 1), high = *above;
  return (index - 1 + (x - low) / (high - low)) / last;
}

}  // namespace

MeanDeviation mean_deviation(const std::vector<double>& values) {
  MeanDeviation result;
  const auto count = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  result.mean = sum / count;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  if (squares > 0) result.deviation = std::sqrt(squares / count);
  return result;
}

std::vector<double> quantiles_of(const std::vector<double>& sorted, int64_t count) {
  std::vector<double> quantiles;
  const auto last = static_cast<double>(sorted.size() - 1);
  for (int64_t i = 0; i < count; ++i) {
    const double place = last * static_cast<double>(i) / static_cast<double>(count - 1);
    const auto below = static_cast<size_t>(place);
    const size_t above = std::min(below + 1, sorted.size() - 1);
    const double share = place - static_cast<double>(below);
    quantiles.push_back(sorted[below] + share * (sorted[above] - sorted[below]));
  }
  return quantiles;
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return quantiles_of(values, 3)[1];
}

double normal_quantile(double p) {
  if (p > 0.5) return -normal_quantile(1 - p);
  // Abramowitz and Stegun 26.2.23, refined by Halley's method.
  const double t = std::sqrt(-2 * std::log(p));
  double x = -(t - (2.515517 + t * (0.802853 + t * 0.010328)) /
                       (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))));
  constexpr int kRounds = 4;
  for (int round = 0; round < kRounds; ++round) {
    const double error = std::erfc(-x / std::numbers::sqrt2) / 2 - p;
    const double step = error * std::sqrt(2 * std::numbers::pi) * std::exp(x * x / 2);
    x -= step / (1 + x * step / 2);
  }
  return x;
}

double quantile_transform(double value, const std::vector<double>& quantiles) {
  // scikit-learn's limits, so that values beyond the quantiles remain finite.
  constexpr double kLeast = 1e-7;
  static const double kLowest = normal_quantile(kLeast - std::numeric_limits<double>::epsilon());
  if (value <= quantiles.front() - kLeast) return kLowest;
  if (value >= quantiles.back() + kLeast) return -kLowest;
  double share = (interpolate(value, quantiles, false) + interpolate(value, quantiles, true)) / 2;
  if (value - kLeast < quantiles.front()) share = 0;
  if (value + kLeast > quantiles.back()) share = 1;
  if (share <= kLeast) return kLowest;
  if (share >= 1 - kLeast) return -kLowest;
  return std::clamp(normal_quantile(share), kLowest, -kLowest);
}

std::vector<double> bins_of(std::vector<double> values, int64_t count) {
  std::sort(values.begin(), values.end());
  std::vector<double> bins = quantiles_of(values, count + 1);
  bins.erase(std::unique(bins.begin(), bins.end()), bins.end());
  if (bins.size() < 2) bins.clear();
  return bins;
}

}  // namespace gallop::data
