#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace gallop::tune {

/// The box between a row of three losses and a reference point, and the union of the parts of it
/// that rows added one by one cover. It keeps only non-dominated corners, so that adding a row that
/// covers nothing new is fast.
class BoxCover {
 public:
  using Corner = std::array<double, 3>;

  BoxCover(const Corner& row, const Corner& reference);

  /// The number of rows added.
  size_t rows() const { return rows_; }

  void add(const Corner& other);
  /// The volume that is not covered.
  double left() const;
  /// A bound on the difference from added_volume().
  double error() const;

 private:
  struct Step {
    double x, y;
  };
  double area(const std::vector<Step>& steps) const;
  double covered() const;

  Corner row_, reference_;
  double whole_;
  bool is_moderate_;
  size_t rows_ = 0;
  std::vector<Corner> corners_;  // Non-dominated corners of the covered region, by the last loss.
};

}  // namespace gallop::tune
