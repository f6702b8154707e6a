#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace gallop::schedule {

/// A learning rate of a range test (Smith, "Cyclical learning rates for training neural networks",
/// WACV 2017) and what training at it came to.
struct RangePoint {
  double lr = 0;
  double loss = 0;
  double smoothed = 0;
};

/// Exponential mean of losses with its bias towards 0 at the start taken out, as Adam's means
/// (Kingma and Ba, 2015).
class SmoothedLoss {
 public:
  /// The share of the past in each new mean, in [0, 1); 0 leaves losses as they are.
  explicit SmoothedLoss(double memory) : memory_(memory) {}
  /// The mean with this loss in it.
  double add(double loss);

 private:
  double memory_;
  double mean_ = 0, bias_ = 1;
};

/// `count` rates from `min` to `max`, both above 0, each the same factor (or with `linear` the same
/// step) from the one before. One rate is `min`.
std::vector<double> rates_between(double min, double max, int64_t count, bool linear);

/// A rule that reads a learning rate off the curve of a range test.
struct LrRule {
  const char* name;
  const char* help;
  /// Given points in the order of their rates; nothing where the curve has no such place.
  std::optional<double> (*suggest)(std::span<const RangePoint> points);
};

/// "between", the geometric mean of "steepest" and "minimum/10", which is the one to take unless
/// another is asked for (docs/training.md has what each comes to), these two, "valley" and "slide",
/// all but the first by the names that fastai gives them.
const std::vector<LrRule>& lr_rules();

/// Where the smoothed loss falls: bounds for a cyclic schedule.
struct LrRange {
  double min = 0;  ///< Here a tenth of the whole fall is done.
  double max = 0;  ///< Here nine tenths are.
};
/// Nothing where the loss does not fall.
std::optional<LrRange> range_of_fall(std::span<const RangePoint> points);

}  // namespace gallop::schedule
