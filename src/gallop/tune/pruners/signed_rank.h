#pragma once

#include <vector>

namespace gallop::tune {

/// The one-sided p-value of Wilcoxon's signed-rank test (1945): the probability that the sum of the
/// ranks of positive differences is at least the observed one if both signs are equally likely.
/// Zeros count half. Exact up to 50 differences, or 13 with ties or zeros; otherwise a normal
/// approximation. `differences` must not be empty or contain NaN.
double signed_rank_p(std::vector<double> differences);

}  // namespace gallop::tune
