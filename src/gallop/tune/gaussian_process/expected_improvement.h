#pragma once

namespace gallop::tune {

/// The logarithm of the expectation of max(0, x + z) for a standard normal x, exact to about 1e-12
/// for any z (Ament et al., "Unexpected improvements to expected improvement", 2023,
/// arXiv 2310.20708). `slope`, if not null, becomes its derivative.
double log_improvement(double z, double* slope);

/// The logarithm of the share of the standard normal distribution below z. `slope`, if not null,
/// becomes its derivative.
double log_normal_cdf(double z, double* slope);

/// exp(x * x) * erfc(x), for x of at least 0.
double scaled_erfc(double x);

/// How much lower than `level` a normally distributed number is expected to be, where higher counts
/// as 0, as a logarithm, and its derivatives by the mean and the deviation.
struct LogImprovement {
  double value, by_mean, by_deviation;
};
LogImprovement log_improvement_below(double level, double mean, double deviation);

}  // namespace gallop::tune
