#pragma once

#include <string>
#include <vector>

#include "gallop/optimize/report.h"

namespace gallop::optimize {

/// A bar of a waterfall: what a change takes off what the goal counts.
struct WaterfallBar {
  std::string label;
  double from = 0, to = 0;  ///< `from` is 0 for the first and the last bar, which are totals.
  std::string text;         ///< "1:05 (1.68x)"
};

/// From the recipe as it is over each kept change to the best recipe. Where the changes together
/// are not worth the product of their gains, a bar shows the difference.
std::vector<WaterfallBar> waterfall_of(const Report& report);

}  // namespace gallop::optimize
