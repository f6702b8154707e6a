#include "gallop/optimize/estimate.h"

#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace gallop::optimize {

double student_t(int64_t degrees_of_freedom) {
  constexpr std::array kQuantiles = {63.657, 9.925, 5.841, 4.604, 4.032, 3.707, 3.499,
                                     3.355,  3.250, 3.169, 3.106, 3.055, 3.012, 2.977,
                                     2.947,  2.921, 2.898, 2.878, 2.861, 2.845};
  if (degrees_of_freedom < 1) return std::numeric_limits<double>::infinity();
  const auto index = static_cast<size_t>(degrees_of_freedom - 1);
  if (index < kQuantiles.size()) return kQuantiles[index];
  // The first terms of its expansion around the normal quantile.
  constexpr double kNormal = 2.575829;
  const double z3 = std::pow(kNormal, 3), z5 = std::pow(kNormal, 5), z7 = std::pow(kNormal, 7);
  const auto n = static_cast<double>(degrees_of_freedom);
  return kNormal + (z3 + kNormal) / (4 * n) + (5 * z5 + 16 * z3 + 3 * kNormal) / (96 * n * n) +
         (3 * z7 + 19 * z5 + 17 * z3 - 15 * kNormal) / (384 * n * n * n);
}

namespace {

double mean(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) sum += value;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

}  // namespace

double standard_error(std::span<const double> values) {
  if (values.size() < 2) return 0;
  const double middle = mean(values);
  double squares = 0;
  for (const double value : values) squares += (value - middle) * (value - middle);
  const auto count = static_cast<double>(values.size());
  return std::sqrt(squares / (count - 1) / count);
}

Estimate mean_of(std::span<const double> values) {
  const double middle = mean(values);
  const double half = values.size() < 2 ? std::numeric_limits<double>::infinity()
                                        : student_t(static_cast<int64_t>(values.size()) - 1) *
                                              standard_error(values);
  return {.value = middle,
          .low = middle - half,
          .high = middle + half,
          .rounds = static_cast<int64_t>(values.size())};
}

Estimate ratio_of(std::span<const double> ratios) {
  std::vector<double> logs;
  logs.reserve(ratios.size());
  for (const double ratio : ratios) logs.push_back(std::log(ratio));
  const Estimate mean = mean_of(logs);
  return {.value = std::exp(mean.value),
          .low = std::exp(mean.low),
          .high = std::exp(mean.high),
          .rounds = mean.rounds};
}

}  // namespace gallop::optimize
