#pragma once

#include <array>
#include <cstdint>
#include <vector>

// Only for sources of plot/.
namespace gallop::plot {

/// Far finer than what is drawn, and coarse enough for whole numbers of 64 bits.
constexpr int64_t kGridSide = int64_t{1} << 14;

/// A node of a grid.
struct GridPoint {
  int64_t x, y;  ///< From 0 to kGridSide.
};

/// Indices of the corners of Delaunay's triangles, counterclockwise: no point lies within the
/// circle through the corners of a triangle. The points must be different. None where all lie on a
/// line. Takes about n log n steps (Bowyer and Watson, 1981; in whole numbers, so that points on
/// one circle or line do no harm).
std::vector<std::array<int32_t, 3>> triangulated(const std::vector<GridPoint>& points);

}  // namespace gallop::plot
