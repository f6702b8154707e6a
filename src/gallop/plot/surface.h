#pragma once

#include <vector>

#include "gallop/plot/ticks.h"

// Internal to plot/.
namespace gallop::plot {

/// The values of a surface at the centers of columns x rows cells of a drawing with these axes,
/// row-major from the bottom; NaN where undefined. Several samples at one position are averaged.
std::vector<double> sampled(const Surface& surface, const AxisTicks& x, const AxisTicks& y,
                            int columns, int rows);

}  // namespace gallop::plot
