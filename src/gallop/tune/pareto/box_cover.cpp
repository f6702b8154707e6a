#include "gallop/tune/pareto/box_cover.h"

#include <algorithm>
#include <limits>

namespace gallop::tune {

namespace {

using Corner = BoxCover::Corner;

// Side length and volume limits within which products and sums neither overflow nor become
// subnormal.
constexpr double kLongest = 1e100, kSmallest = 1e-200;

/// Whether the box of one corner contains the other's. Branchless, as branches are unpredictable.
bool holds(const Corner& a, const Corner& b) {
  return (a[0] <= b[0]) & (a[1] <= b[1]) & (a[2] <= b[2]);
}

}  // namespace

BoxCover::BoxCover(const Corner& row, const Corner& reference)
    : row_(row), reference_(reference), whole_(1), is_moderate_(true) {
  for (size_t i = 0; i < row.size(); ++i) {
    const double side = reference[i] - row[i];
    whole_ *= side;
    is_moderate_ &= side > 0 && side < kLongest;
  }
  is_moderate_ &= whole_ > kSmallest;
}

void BoxCover::add(const Corner& other) {
  ++rows_;
  Corner corner;
  for (size_t i = 0; i < corner.size(); ++i) {
    corner[i] = std::max(row_[i], other[i]);
    if (corner[i] >= reference_[i]) return;
  }
  bool is_held = false;
  for (const Corner& known : corners_) is_held |= holds(known, corner);
  if (is_held) return;
  std::erase_if(corners_, [&](const Corner& known) { return holds(corner, known); });
  const auto is_lower = [](const Corner& a, const Corner& b) { return a[2] < b[2]; };
  corners_.insert(std::upper_bound(corners_.begin(), corners_.end(), corner, is_lower), corner);
}

double BoxCover::left() const { return whole_ - covered(); }

// The rounding error for n rows is at most (5n + 22) / 2 epsilon.
double BoxCover::error() const {
  if (!is_moderate_) return std::numeric_limits<double>::infinity();
  return 1e-15 * static_cast<double>(rows_ + 4) * whole_;
}

double BoxCover::covered() const {
  std::vector<Step> steps;  // The staircase of the covered region at one level.
  double volume = 0;
  for (size_t i = 0; i < corners_.size(); ++i) {
    const auto [x, y, height] = corners_[i];
    const auto begin =
        std::find_if(steps.begin(), steps.end(), [&](const Step& step) { return step.x >= x; });
    const auto end = std::find_if(begin, steps.end(), [&](const Step& step) { return step.y < y; });
    steps.insert(steps.erase(begin, end), {x, y});
    const double next = i + 1 < corners_.size() ? corners_[i + 1][2] : reference_[2];
    if (next > height) volume += area(steps) * (next - height);
  }
  return volume;
}

double BoxCover::area(const std::vector<Step>& steps) const {
  double area = 0;
  for (size_t i = 0; i < steps.size(); ++i) {
    const double next = i + 1 < steps.size() ? steps[i + 1].x : reference_[0];
    area += (next - steps[i].x) * (reference_[1] - steps[i].y);
  }
  return area;
}

}  // namespace gallop::tune
