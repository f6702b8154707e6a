#pragma once

#include <cstddef>
#include <vector>

#include "gallop/tune/space.h"

namespace gallop::tune {

/// Encodes the points of a space for a Gaussian process: each variable parameter is a dimension, a
/// number as its position in the interval, in [0, 1], and a choice as its index. An inactive number
/// is encoded as the middle of its interval and an inactive choice as an extra category; the
/// parameter that decides whether it is active is a dimension as well, so that all branches of a
/// conditional space share one model.
class Coordinates {
 public:
  explicit Coordinates(Space space);

  struct Dimension {
    size_t parameter;
    bool is_categorical;
    /// The coordinates of all values if they are few enough to enumerate; empty otherwise.
    std::vector<double> values;
    int64_t count;  ///< Number of values; 0 if they are not counted.
  };

  const Space& space() const { return space_; }
  const std::vector<Dimension>& dimensions() const { return dimensions_; }
  std::vector<bool> categorical() const;

  std::vector<double> encoded(const Point& point) const;
  /// Decodes the nearest point; inactive parameters may have any coordinate.
  Point decoded(const std::vector<double>& coordinates) const;
  /// The coordinates of decoded().
  std::vector<double> rounded(const std::vector<double>& coordinates) const {
    return encoded(decoded(coordinates));
  }
  /// Maps a uniform number in [0, 1) to a coordinate of a dimension with the parameter's sampling
  /// distribution.
  double drawn(size_t dimension, double uniform) const;
  /// The coordinate of the value `distance` values away from the one nearest to `coordinate`,
  /// clamped to the first and last value.
  double neighbor(size_t dimension, double coordinate, int64_t distance) const;

 private:
  double encoded_value(const Dimension& dimension, double value) const;
  double decoded_value(const Dimension& dimension, double coordinate) const;

  Space space_;
  std::vector<Dimension> dimensions_;
};

}  // namespace gallop::tune
