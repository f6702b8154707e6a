#include "gallop/tune/gaussian_process/coordinates.h"

#include <algorithm>
#include <cmath>

#include "gallop/tune/samplers/random.h"

namespace gallop::tune {

namespace {

constexpr int64_t kMostListed = 16;

}  // namespace

Coordinates::Coordinates(Space space) : space_(std::move(space)) {
  for (size_t i = 0; i < space_.size(); ++i) {
    Dimension dimension{.parameter = i, .is_categorical = false, .values = {}, .count = 0};
    if (const Choices* const choices = space_[i].choices()) {
      dimension.is_categorical = true;
      dimension.count = static_cast<int64_t>(choices->values.size());
      for (size_t k = 0; k < choices->values.size(); ++k) {
        if (choices->weights.empty() || choices->weights[k] > 0) {
          dimension.values.push_back(static_cast<double>(k));
        }
      }
      if (choices->values.size() < 2) continue;
    } else {
      const Interval& interval = *space_[i].interval();
      dimension.count = count(interval);
      if (dimension.count == 1 || interval.low == interval.high) continue;
      const auto [low, high] = coordinates(interval);
      for (int64_t k = 0; dimension.count <= kMostListed && k < dimension.count; ++k) {
        const double value = value_on_grid(interval, static_cast<double>(k));
        dimension.values.push_back((coordinate(interval, value) - low) / (high - low));
      }
    }
    dimensions_.push_back(std::move(dimension));
  }
}

std::vector<bool> Coordinates::categorical() const {
  std::vector<bool> result;
  for (const Dimension& dimension : dimensions_) result.push_back(dimension.is_categorical);
  return result;
}

double Coordinates::encoded_value(const Dimension& dimension, double value) const {
  if (dimension.is_categorical) {
    return std::isnan(value) ? static_cast<double>(dimension.count) : value;
  }
  if (std::isnan(value)) return 0.5;
  const Interval& interval = *space_[dimension.parameter].interval();
  const auto [low, high] = coordinates(interval);
  return (coordinate(interval, value) - low) / (high - low);
}

double Coordinates::decoded_value(const Dimension& dimension, double coordinate) const {
  if (dimension.is_categorical) {
    // The last category stands for an inactive parameter.
    return coordinate < static_cast<double>(dimension.count) ? coordinate : dimension.values[0];
  }
  const Interval& interval = *space_[dimension.parameter].interval();
  const auto [low, high] = coordinates(interval);
  return value_at(interval, low + std::clamp(coordinate, 0.0, 1.0) * (high - low));
}

std::vector<double> Coordinates::encoded(const Point& point) const {
  std::vector<double> result;
  for (const Dimension& dimension : dimensions_) {
    result.push_back(encoded_value(dimension, point[dimension.parameter]));
  }
  return result;
}

Point Coordinates::decoded(const std::vector<double>& coordinates) const {
  Point point;
  for (const Parameter& parameter : space_.parameters()) {
    point.push_back(parameter.interval() != nullptr ? parameter.interval()->low : 0);
  }
  for (size_t d = 0; d < dimensions_.size(); ++d) {
    point[dimensions_[d].parameter] = decoded_value(dimensions_[d], coordinates[d]);
  }
  space_.drop_inactive(point);
  return point;
}

double Coordinates::drawn(size_t dimension, double uniform) const {
  const Dimension& drawn = dimensions_[dimension];
  return drawn.is_categorical ? choice_at_share(*space_[drawn.parameter].choices(), uniform)
                              : uniform;
}

double Coordinates::neighbor(size_t dimension, double coordinate, int64_t distance) const {
  const Dimension& own = dimensions_[dimension];
  const Interval& interval = *space_[own.parameter].interval();
  const double value = decoded_value(own, coordinate);
  const double last = value_on_grid(interval, static_cast<double>(own.count - 1));
  return encoded_value(
      own, std::clamp(value + static_cast<double>(distance) * interval.step, interval.low, last));
}

}  // namespace gallop::tune
