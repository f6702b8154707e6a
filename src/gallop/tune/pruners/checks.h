#pragma once

#include <cstdint>
#include <limits>
#include <unordered_map>
#include <vector>

#include "gallop/config/visitor.h"
#include "gallop/tune/trial.h"

namespace gallop::tune {

/// The reports at which a trial is evaluated: the first one at or after `warmup_steps`, and then
/// the first one at or after each further `interval_steps`.
struct CheckTimes {
  int64_t warmup_steps = 0;
  int64_t interval_steps = 1;
};

void visit(config::Visitor& visitor, CheckTimes& times);

/// Whether the last report of a trial, which has at least one, is such a report.
bool is_due(const CheckTimes& times, const Trial& trial);

/// The smallest losses of trials, cached so that each report is read only once.
class SmallestLosses {
 public:
  /// The smallest of the first `count` reports of a trial; NaN if all of them are NaN.
  double of(const Trial& trial, size_t count);

 private:
  struct Known {
    size_t count = 0;
    int32_t rewinds = 0;
    double loss = std::numeric_limits<double>::quiet_NaN();
  };
  std::unordered_map<int64_t, Known> known_;
};

/// The percentile of sorted values with linear interpolation, as in NumPy. There must be at least
/// one value.
double percentile(const std::vector<double>& sorted, double percent);

}  // namespace gallop::tune
