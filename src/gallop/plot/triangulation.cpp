#include "gallop/plot/triangulation.h"

#include <algorithm>
#include <cstddef>
#include <unordered_map>
#include <utility>

#include "gallop/base/permutation.h"

namespace gallop::plot {

namespace {

using std::size_t;

constexpr int32_t kFar = -1;  // The vertex at infinity of the triangles outside of the hull.

using Corners = std::array<int32_t, 3>;

class Triangulation {
 public:
  explicit Triangulation(const std::vector<GridPoint>& points) : points_(points) {}

  std::vector<Corners> make(std::vector<int32_t> order) {
    if (!begin(order)) return {};
    for (const int32_t point : order) insert(point);
    std::vector<Corners> found;
    for (size_t i = 0; i < triangles_.size(); ++i) {
      if (lives_[i] && far_corner(triangles_[i]) < 0) found.push_back(triangles_[i]);
    }
    return found;
  }

 private:
  using Side = std::pair<int32_t, int32_t>;

  const GridPoint& at(int32_t corner) const { return points_[static_cast<size_t>(corner)]; }

  // Positive if c is to the left of the line from a to b.
  int64_t turn(int32_t a, int32_t b, int32_t c) const {
    return (at(b).x - at(a).x) * (at(c).y - at(a).y) - (at(b).y - at(a).y) * (at(c).x - at(a).x);
  }

  // The index of the vertex at infinity; -1 if there is none.
  static int far_corner(const Corners& triangle) {
    for (int i = 0; i < 3; ++i) {
      if (triangle[static_cast<size_t>(i)] == kFar) return i;
    }
    return -1;
  }

  // Whether a point is within the circumcircle. All terms are below 2^60.
  bool encloses(const Corners& triangle, int32_t point) const {
    const int far = far_corner(triangle);
    if (far >= 0) {
      const int32_t from = triangle[static_cast<size_t>((far + 1) % 3)];
      const int32_t to = triangle[static_cast<size_t>((far + 2) % 3)];
      const int64_t side = turn(from, to, point);
      return side > 0 || (side == 0 && lies_between(from, to, point));
    }
    int64_t x[3], y[3], square[3];
    for (size_t i = 0; i < 3; ++i) {
      x[i] = at(triangle[i]).x - at(point).x;
      y[i] = at(triangle[i]).y - at(point).y;
      square[i] = x[i] * x[i] + y[i] * y[i];
    }
    return square[0] * (x[1] * y[2] - x[2] * y[1]) + square[1] * (x[2] * y[0] - x[0] * y[2]) +
               square[2] * (x[0] * y[1] - x[1] * y[0]) >
           0;
  }

  bool lies_between(int32_t from, int32_t to, int32_t point) const {
    const auto part = [&](int64_t a, int64_t b, int64_t c) { return (c - a) * (b - c); };
    return part(at(from).x, at(to).x, at(point).x) + part(at(from).y, at(to).y, at(point).y) > 0;
  }

  static uint64_t key(int32_t from, int32_t to) {
    return static_cast<uint64_t>(static_cast<uint32_t>(from)) << 32 | static_cast<uint32_t>(to);
  }

  void add(const Corners& corners) {
    const auto index = static_cast<int32_t>(triangles_.size());
    triangles_.push_back(corners);
    lives_.push_back(true);
    for (size_t i = 0; i < 3; ++i) left_of_[key(corners[i], corners[(i + 1) % 3])] = index;
  }

  void remove(int32_t index) {
    const Corners& corners = triangles_[static_cast<size_t>(index)];
    lives_[static_cast<size_t>(index)] = false;
    for (size_t i = 0; i < 3; ++i) left_of_.erase(key(corners[i], corners[(i + 1) % 3]));
  }

  // Creates the first triangle, and removes its vertices from the order. False if there is none.
  bool begin(std::vector<int32_t>& order) {
    if (order.size() < 3) return false;
    size_t third = 2;
    while (third < order.size() && turn(order[0], order[1], order[third]) == 0) ++third;
    if (third == order.size()) return false;
    Corners first = {order[0], order[1], order[third]};
    if (turn(first[0], first[1], first[2]) < 0) std::swap(first[0], first[1]);
    order.erase(order.begin() + static_cast<std::ptrdiff_t>(third));
    order.erase(order.begin(), order.begin() + 2);
    add(first);
    for (size_t i = 0; i < 3; ++i) add({first[(i + 1) % 3], first[i], kFar});
    return true;
  }

  // Finds a triangle whose circumcircle contains the point, by walking towards it.
  int32_t find(int32_t point) const {
    auto index = static_cast<int32_t>(triangles_.size()) - 1;
    while (true) {
      const Corners& corners = triangles_[static_cast<size_t>(index)];
      const int far = far_corner(corners);
      if (far >= 0 && encloses(corners, point)) return index;
      int32_t next = -1;
      for (size_t i = 0; i < 3 && next < 0; ++i) {
        const int32_t from = corners[i], to = corners[(i + 1) % 3];
        if (from == kFar || to == kFar) continue;
        if (far >= 0 || turn(from, to, point) < 0) next = left_of_.at(key(to, from));
      }
      if (next < 0) return index;
      index = next;
    }
  }

  // Replaces the triangles whose circumcircles contain the point by ones between it and their
  // boundary.
  void insert(int32_t point) {
    std::vector<int32_t> enclosing = {find(point)};
    std::vector<Side> rim;
    remove(enclosing.front());
    for (size_t i = 0; i < enclosing.size(); ++i) {
      const Corners corners = triangles_[static_cast<size_t>(enclosing[i])];
      for (size_t j = 0; j < 3; ++j) {
        const int32_t from = corners[j], to = corners[(j + 1) % 3];
        const auto beyond = left_of_.find(key(to, from));
        if (beyond == left_of_.end()) continue;  // Already removed.
        const int32_t neighbor = beyond->second;
        if (encloses(triangles_[static_cast<size_t>(neighbor)], point)) {
          remove(neighbor);
          enclosing.push_back(neighbor);
        } else {
          rim.emplace_back(from, to);
        }
      }
    }
    for (const auto& [from, to] : rim) add({from, to, point});
  }

  const std::vector<GridPoint>& points_;
  std::vector<Corners> triangles_;
  std::vector<bool> lives_;
  std::unordered_map<uint64_t, int32_t> left_of_;  // The triangle to the left of each edge.
};

}  // namespace

std::vector<Corners> triangulated(const std::vector<GridPoint>& points) {
  // In random order, so that few temporary triangles are created.
  if (points.empty()) return {};
  const Permutation permutation(/*seed=*/1, /*epoch=*/0, static_cast<int64_t>(points.size()));
  std::vector<int32_t> order;
  for (int64_t i = 0; i < permutation.size(); ++i) {
    order.push_back(static_cast<int32_t>(permutation(i)));
  }
  return Triangulation(points).make(std::move(order));
}

}  // namespace gallop::plot
