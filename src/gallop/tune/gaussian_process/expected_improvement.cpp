#include "gallop/tune/gaussian_process/expected_improvement.h"

#include <cmath>
#include <numbers>

namespace gallop::tune {

namespace {

constexpr double kRootOfHalf = std::numbers::sqrt2 / 2;
constexpr double kRootOfHalfPi = 1.2533141373155003;  // sqrt(pi / 2)
const double kLogOfRootOfTwoPi = 0.5 * std::log(2 * std::numbers::pi);

}  // namespace

double scaled_erfc(double x) {
  if (x < 3) return std::exp(x * x) * std::erfc(x);
  // Laplace's continued fraction (Abramowitz and Stegun, 7.1.14), evaluated from its end. The
  // truncation error of n terms decays as exp(-2 x sqrt(2 n)).
  const int terms = 10 + static_cast<int>(300 / (x * x));
  double rest = x;
  for (int k = terms; k > 0; --k) rest = x + 0.5 * k / rest;
  return std::numbers::inv_sqrtpi / rest;
}

double log_improvement(double z, double* slope) {
  const double half_square = 0.5 * z * z;
  if (z > -1) {
    const double density = std::exp(-half_square - kLogOfRootOfTwoPi);
    const double below = 0.5 * std::erfc(-kRootOfHalf * z);
    const double improvement = density + z * below;
    if (slope != nullptr) *slope = below / improvement;
    return std::log(improvement);
  }
  if (z > -1e5) {
    const double ratio = kRootOfHalfPi * scaled_erfc(-kRootOfHalf * z);
    const double rest = 1 + z * ratio;
    if (slope != nullptr) *slope = ratio / rest;
    return std::log(rest) - half_square - kLogOfRootOfTwoPi;
  }
  if (slope != nullptr) *slope = -z - 2 / z;
  return -half_square - kLogOfRootOfTwoPi - 2 * std::log(-z);
}

double log_normal_cdf(double z, double* slope) {
  if (z > -3) {
    const double below = 0.5 * std::erfc(-kRootOfHalf * z);
    if (slope != nullptr) *slope = std::exp(-0.5 * z * z - kLogOfRootOfTwoPi) / below;
    return std::log(below);
  }
  const double tail = scaled_erfc(-kRootOfHalf * z);
  if (slope != nullptr) *slope = 1 / (kRootOfHalfPi * tail);
  return std::log(0.5 * tail) - 0.5 * z * z;
}

LogImprovement log_improvement_below(double level, double mean, double deviation) {
  const double z = (level - mean) / deviation;
  double slope = 0;
  const double value = log_improvement(z, &slope) + std::log(deviation);
  return {value, -slope / deviation, (1 - slope * z) / deviation};
}

}  // namespace gallop::tune
