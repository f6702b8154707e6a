#pragma once

#include "gallop/tune/pruner.h"
#include "gallop/tune/pruners/checks.h"

// Prunes a trial whose best loss so far is worse than that of most complete trials at the same step
// (Golovin et al., "Google Vizier", 2017, section 3.2.2), or whose losses are all NaN.
namespace gallop::tune {

/// The complete trials that a trial is compared with.
struct PeersConfig {
  int64_t startup_trials = 5;  ///< Complete trials before pruning starts.
  int64_t min_trials = 1;      ///< Complete trials that must have reported at a step.
  CheckTimes times;
};

struct PercentileConfig {
  double percentile = 25;  ///< The percentage of trials that continue.
  PeersConfig peers;
};

/// The median rule: percentile 50.
struct MedianConfig {
  PeersConfig peers;
};

void visit(config::Visitor& visitor, PercentileConfig& config);
void visit(config::Visitor& visitor, MedianConfig& config);
std::unique_ptr<Pruner> make_percentile(const PercentileConfig& config,
                                        const StudySettings& settings);
std::unique_ptr<Pruner> make_median(const MedianConfig& config, const StudySettings& settings);

}  // namespace gallop::tune
