#pragma once

#include <cstdint>
#include <span>

namespace gallop::optimize {

/// A measured quantity with its 99 % confidence interval: decisions are taken after each round of
/// a comparison, and the wider interval makes up for looking several times.
struct Estimate {
  double value = 0, low = 0, high = 0;
  int64_t rounds = 0;
};

/// The quantile of Student's t-distribution that bounds a two-sided 99 % interval; 1 or more
/// degrees of freedom.
double student_t(int64_t degrees_of_freedom);

/// The standard error of the mean of values: their standard deviation over the root of their
/// number; 0 for fewer than two.
double standard_error(std::span<const double> values);

/// The mean of measurements. The interval of fewer than two is infinite.
Estimate mean_of(std::span<const double> values);

/// The geometric mean of positive ratios, by mean_of() of their logarithms; 0 to infinity for fewer
/// than two.
Estimate ratio_of(std::span<const double> ratios);

}  // namespace gallop::optimize
