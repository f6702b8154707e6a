#pragma once

namespace gallop::tune {

/// The cumulative distribution function of the standard normal distribution.
double normal_cdf(double x);

/// The quantile function, to a relative error of 1e-15; `p` in (0, 1) (Wichura, AS 241, 1988).
double normal_quantile(double p);

}  // namespace gallop::tune
