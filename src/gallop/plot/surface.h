#pragma once

#include <vector>

#include "gallop/plot/ticks.h"

// Only for sources of plot/.
namespace gallop::plot {

/// The values of a surface at the middles of columns x rows cells of a drawing with these axes, row
/// by row from its bottom; NaN where there is none. Where it has several values at one place, their
/// average counts.
std::vector<double> sampled(const Surface& surface, const AxisTicks& x, const AxisTicks& y,
                            int columns, int rows);

}  // namespace gallop::plot
