#pragma once

namespace gallop::tune {

/// log E[max(0, x + z)] for a standard normal x, to about 1e-12 for any z (Ament et al.,
/// "Unexpected improvements to expected improvement", 2023, arXiv 2310.20708). `slope`, if not
/// null, receives the derivative.
double log_improvement(double z, double* slope);

/// The logarithm of the standard normal cumulative distribution function at z. `slope`, if not
/// null, receives the derivative.
double log_normal_cdf(double z, double* slope);

/// exp(x * x) * erfc(x), for x of at least 0.
double scaled_erfc(double x);

/// The logarithm of the expected improvement of a normal distribution below `level`, with its
/// derivatives by mean and deviation.
struct LogImprovement {
  double value, by_mean, by_deviation;
};
LogImprovement log_improvement_below(double level, double mean, double deviation);

}  // namespace gallop::tune
