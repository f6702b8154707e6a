#pragma once

#include <string>

#include "gallop/config/visitor.h"
#include "gallop/schedule/span.h"

namespace gallop::schedule {

/// A warm-up to factor 1 at the beginning of a schedule. With x the elapsed fraction of the
/// warm-up:
///
///     linear        start + (1 - start) x      (Goyal et al., "Accurate, large minibatch SGD",
///     2017) exponential   start^(1 - x) constant      start                      (He et al., "Deep
///     residual learning", 2015)
struct WarmupConfig {
  std::string length = "0";
  std::string kind = "linear";
  double start = 0;
};

/// Names of the warm-up options, which differ between schedules.
struct WarmupNames {
  const char* length = "warmup";
  const char* kind = "warmup_kind";
  const char* start = "warmup_start";
};

void visit_warmup(config::Visitor& visitor, WarmupConfig& config, const WarmupNames& names = {});

/// A warm-up in fractions of a run.
class Warmup {
 public:
  /// Throws UsageError for a constant or exponential warm-up that starts at 0, and if it is longer
  /// than the run; `schedule` is used in messages.
  Warmup(const char* schedule, const WarmupConfig& config, const RunLength& length);

  /// The fraction of the run that it takes.
  double end() const { return end_; }
  bool is_over(double progress) const;
  /// The factor during the warm-up.
  double factor(double progress) const;
  /// The position of progress in the rest of the run, in [0, 1].
  double share_of_rest(double progress) const;

 private:
  double end_;
  std::string kind_;
  double start_;
};

}  // namespace gallop::schedule
