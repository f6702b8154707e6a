#pragma once

#include "gallop/tune/pruner.h"

namespace gallop::tune {

/// For reports on independent items such as folds or problem instances, with the item's index as
/// the step: prunes a trial if Wilcoxon's signed-rank test finds its losses larger than those of
/// the best trial at the same steps, and its mean is larger as well. Trials with non-finite reports
/// are not pruned, nor is any if the best trial has some.
struct WilcoxonConfig {
  double p_threshold = 0.1;   ///< The larger, the more trials are pruned.
  int64_t startup_steps = 2;  ///< Minimum number of common steps.
};

void visit(config::Visitor& visitor, WilcoxonConfig& config);
std::unique_ptr<Pruner> make_wilcoxon(const WilcoxonConfig& config, const StudySettings& settings);

}  // namespace gallop::tune
