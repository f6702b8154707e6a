#pragma once

#include <cstddef>
#include <vector>

#include "gallop/tune/space.h"

namespace gallop::tune {

/// The points of a space as a Gaussian process sees them: for each parameter that can vary, where
/// its value stands between the ends of its interval, in [0, 1], or the index of its choice. A
/// parameter without a value stands in the middle of its interval, or has a choice of its own; that
/// it has none is told by the parameter that decides it, which is a dimension, too. So trials of
/// all branches of a space tell something of each other, as far as what they share matters.
class Coordinates {
 public:
  explicit Coordinates(Space space);

  struct Dimension {
    size_t parameter;
    bool is_categorical;
    /// The coordinates of all values, if there are few enough to try them all; empty otherwise.
    std::vector<double> values;
    int64_t count;  ///< Of values; 0 where they are not counted.
  };

  const Space& space() const { return space_; }
  const std::vector<Dimension>& dimensions() const { return dimensions_; }
  std::vector<bool> categorical() const;

  std::vector<double> encoded(const Point& point) const;
  /// What is nearest to coordinates in which inactive parameters may stand anywhere.
  Point decoded(const std::vector<double>& coordinates) const;
  /// The coordinates of decoded().
  std::vector<double> rounded(const std::vector<double>& coordinates) const {
    return encoded(decoded(coordinates));
  }
  /// Of a number of equal chances in [0, 1), the coordinate in a dimension: values are as frequent
  /// as they are to be drawn.
  double drawn(size_t dimension, double uniform) const;
  /// The coordinate of the value this many values away from the nearest to a coordinate, or of the
  /// last on that side.
  double neighbor(size_t dimension, double coordinate, int64_t distance) const;

 private:
  double encoded_value(const Dimension& dimension, double value) const;
  double decoded_value(const Dimension& dimension, double coordinate) const;

  Space space_;
  std::vector<Dimension> dimensions_;
};

}  // namespace gallop::tune
