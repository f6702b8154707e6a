#pragma once

#include "gallop/tune/pruner.h"

namespace gallop::tune {

/// For reports that are each about something of its own, as a fold or a problem, with its number as
/// the step: a trial is pruned where Wilcoxon's signed-rank test holds its losses for larger than
/// those of the best trial at the same steps, and their mean is as well. Trials with reports that
/// are not finite are left alone, as are all where the best trial has some.
struct WilcoxonConfig {
  double p_threshold = 0.1;   ///< The larger, the more is pruned.
  int64_t startup_steps = 2;  ///< No trial is pruned before so many steps can be compared.
};

void visit(config::Visitor& visitor, WilcoxonConfig& config);
std::unique_ptr<Pruner> make_wilcoxon(const WilcoxonConfig& config, const StudySettings& settings);

}  // namespace gallop::tune
