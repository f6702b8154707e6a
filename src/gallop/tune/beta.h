#pragma once

namespace gallop::tune {

/// The cumulative distribution function of the beta distribution with parameters a, b > 0: the
/// regularized incomplete beta function, computed by its continued fraction (DLMF 8.17.22).
double beta_cdf(double x, double a, double b);

/// The inverse of beta_cdf(), to its precision; `p` in [0, 1].
double beta_quantile(double p, double a, double b);

}  // namespace gallop::tune
