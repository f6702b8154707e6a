#pragma once

#include <vector>

namespace gallop::tune {

/// Wilcoxon's signed-rank test: the probability that the sum of the ranks of positive differences
/// is at least the observed one, if both signs of each difference are equally likely (Wilcoxon,
/// 1945). Half of the ranks of zeros count as positive. Exact up to 50 differences, or 13 with ties
/// or zeros; otherwise by a normal approximation. `differences` must have at least one number, and
/// no NaN.
double signed_rank_p(std::vector<double> differences);

}  // namespace gallop::tune
