#pragma once

#include <array>
#include <cstdint>
#include <vector>

// Internal to plot/.
namespace gallop::plot {

/// Far finer than drawings, and coarse enough for 64-bit integers.
constexpr int64_t kGridSide = int64_t{1} << 14;

/// A node of a grid.
struct GridPoint {
  int64_t x, y;  ///< In [0, kGridSide].
};

/// Vertex indices of the Delaunay triangulation, counterclockwise: no point is within the
/// circumcircle of a triangle. Points must be distinct. Empty if all are collinear. O(n log n)
/// (Bowyer and Watson, 1981; in integers, so that cocircular and collinear points are handled
/// exactly).
std::vector<std::array<int32_t, 3>> triangulated(const std::vector<GridPoint>& points);

}  // namespace gallop::plot
