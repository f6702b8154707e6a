#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace gallop::tune {

/// The box between a row of three losses and a reference, of which those of other rows, that come
/// one by one, cover parts. It keeps only what no other covers more of, so that it is fast where
/// most of what comes covers nothing new.
class BoxCover {
 public:
  using Corner = std::array<double, 3>;

  BoxCover(const Corner& row, const Corner& reference);

  /// How many rows have come.
  size_t rows() const { return rows_; }

  void add(const Corner& other);
  /// The volume of what is not covered.
  double left() const;
  /// How far from it added_volume() may be.
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
  std::vector<Corner> corners_;  // The lowest of what is covered, by the last loss.
};

}  // namespace gallop::tune
