#pragma once

#include "gallop/tune/pruner.h"

namespace gallop::tune {

/// For reports about independent items such as folds or problems, with the item's number as the
/// step: prunes a trial if Wilcoxon's signed-rank test finds its losses larger than those of the
/// best trial at the same steps, and so is their mean. Trials with reports that are not finite are
/// not pruned, nor are any if the best trial has some.
struct WilcoxonConfig {
  double p_threshold = 0.1;   ///< The larger, the more is pruned.
  int64_t startup_steps = 2;  ///< No trial is pruned before so many steps can be compared.
};

void visit(config::Visitor& visitor, WilcoxonConfig& config);
std::unique_ptr<Pruner> make_wilcoxon(const WilcoxonConfig& config, const StudySettings& settings);

}  // namespace gallop::tune
