#pragma once

#include <string>

#include "gallop/config/visitor.h"
#include "gallop/schedule/span.h"

namespace gallop::schedule {

/// A rise to factor 1 before what a schedule is about. With x the share of the rise that is over:
///
///     linear        start + (1 - start) x      (Goyal et al., "Accurate, large minibatch SGD",
///     2017) exponential   start^(1 - x) constant      start                      (He et al., "Deep
///     residual learning", 2015)
struct WarmupConfig {
  std::string length = "0";
  std::string kind = "linear";
  double start = 0;
};

/// What the options of a warm-up are called: by default those of another schedule.
struct WarmupNames {
  const char* length = "warmup";
  const char* kind = "warmup_kind";
  const char* start = "warmup_start";
};

void visit_warmup(config::Visitor& visitor, WarmupConfig& config, const WarmupNames& names = {});

/// A warm-up in shares of a run.
class Warmup {
 public:
  /// Throws UsageError for a constant or exponential one that starts at 0, and where it is longer
  /// than the run; `schedule` names whose it is.
  Warmup(const char* schedule, const WarmupConfig& config, const RunLength& length);

  /// Share of the run that it takes.
  double end() const { return end_; }
  bool is_over(double progress) const;
  /// The factor before it is over.
  double factor(double progress) const;
  /// Where progress stands in the rest of the run, in [0, 1].
  double share_of_rest(double progress) const;

 private:
  double end_;
  std::string kind_;
  double start_;
};

}  // namespace gallop::schedule
