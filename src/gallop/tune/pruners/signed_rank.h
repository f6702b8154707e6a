#pragma once

#include <vector>

namespace gallop::tune {

/// Wilcoxon's signed-rank test: how likely the sum of the ranks of positive differences is at least
/// what it is, were each difference as likely to have the other sign (Wilcoxon, 1945). Half of the
/// ranks of zeros count as positive. Exact up to 50 differences, or 13 where some are equal in size
/// or zero; otherwise by a normal distribution. `differences` has at least one number, and no NaN.
double signed_rank_p(std::vector<double> differences);

}  // namespace gallop::tune
