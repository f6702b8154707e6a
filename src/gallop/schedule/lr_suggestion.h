#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gallop::schedule {

/// A learning rate of a range test (Smith, "Cyclical learning rates for training neural networks",
/// WACV 2017) with the loss of training at it.
struct RangePoint {
  double lr = 0;
  double loss = 0;
  double smoothed = 0;
};

/// A bias-corrected exponential moving average of losses, as in Adam (Kingma and Ba, 2015).
class SmoothedLoss {
 public:
  /// The weight of the previous average, in [0, 1); 0 disables smoothing.
  explicit SmoothedLoss(double memory) : memory_(memory) {}
  /// Adds a loss and returns the new average.
  double add(double loss);

 private:
  double memory_;
  double mean_ = 0, bias_ = 1;
};

/// `count` rates from `min` to `max`, both above 0, spaced geometrically, or linearly if `linear`.
/// A single rate is `min`.
std::vector<double> rates_between(double min, double max, int64_t count, bool linear);

/// A rule that suggests a learning rate from the curve of a range test.
struct LrRule {
  const char* name;
  const char* help;
  /// Takes points ordered by rate; nothing if the rule does not apply to the curve.
  std::optional<double> (*suggest)(std::span<const RangePoint> points);
};

/// "between", the geometric mean of "steepest" and "minimum/10", which is the default
/// (docs/training.md compares them), these two, "valley" and "slide", all but the first named as in
/// fastai.
const std::vector<LrRule>& lr_rules();

/// The range in which the smoothed loss falls: bounds for a cyclic schedule.
struct LrRange {
  double min = 0;  ///< 10% of the total decrease is reached.
  double max = 0;  ///< 90% of it is reached.
};
/// Nothing if the loss does not fall.
std::optional<LrRange> range_of_fall(std::span<const RangePoint> points);

}  // namespace gallop::schedule
