#include "gallop/tune/cma/margin.h"

#include <algorithm>
#include <cmath>

#include "gallop/tune/normal.h"

namespace gallop::tune {

namespace {

constexpr double kTiny = 1e-10;  // Smallest tail probability.

/// The distance from the mean, in standard deviations, beyond which a tail probability < 0.5 lies.
double distance_of(double share) { return -normal_quantile(share); }

/// The probabilities below and above a value.
struct Shares {
  double below, above;
};

Shares corrected(Shares shares, double margin) {
  const double at = 1 - shares.below - shares.above;
  const double below = std::max(shares.below, margin / 2);
  const double above = std::max(shares.above, margin / 2);
  const double excess = (1 - below - above - at) / (below + at + above - 1.5 * margin);
  return {std::clamp(below + excess * (below - margin / 2), kTiny, 0.5 - kTiny),
          std::clamp(above + excess * (above - margin / 2), kTiny, 0.5 - kTiny)};
}

}  // namespace

void CmaMargin::correct(CmaDistribution& distribution) {
  const double margin =
      1 / static_cast<double>(distribution.dimensions() * distribution.population());
  for (size_t i = 0; i < limits_.size(); ++i) {
    if (limits_[i]) correct(distribution, i, margin);
  }
}

void CmaMargin::correct(CmaDistribution& distribution, size_t dimension, double margin) {
  const double mean = distribution.mean()[dimension];
  const auto [low, high] = limits_[dimension](mean);
  const double deviation = distribution.deviation(dimension) * factors_[dimension];
  const Shares shares{normal_cdf((low - mean) / deviation), normal_cdf((mean - high) / deviation)};
  if (low == high || std::max(shares.below, shares.above) > 0.5) {
    if (std::min(shares.below, shares.above) >= margin) return;
    const double distance = deviation * distance_of(margin);
    distribution.set_mean(dimension, high + std::copysign(distance, mean - high));
    return;
  }
  const Shares wanted = corrected(shares, margin);
  const double below = distance_of(wanted.below), above = distance_of(wanted.above);
  factors_[dimension] = (high - low) / ((below + above) * distribution.deviation(dimension));
  distribution.set_mean(dimension, (low * above + high * below) / (below + above));
}

std::vector<double> CmaMargin::widened(const CmaDistribution& distribution,
                                       std::vector<double> point) const {
  for (size_t i = 0; i < point.size(); ++i) {
    const double mean = distribution.mean()[i];
    if (limits_[i]) point[i] = mean + factors_[i] * (point[i] - mean);
  }
  return point;
}

}  // namespace gallop::tune
