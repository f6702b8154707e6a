#pragma once

namespace gallop::tune {

/// The cumulative distribution function of the beta distribution with these two parameters, above
/// 0: the regularized incomplete beta function, by its continued fraction (DLMF 8.17.22).
double beta_cdf(double x, double a, double b);

/// The inverse, to the last bits of beta_cdf(); `p` in [0, 1].
double beta_quantile(double p, double a, double b);

}  // namespace gallop::tune
