#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gallop/tune/study.h"

// How much each parameter of a study matters. All read complete trials with finite losses, and
// answer with a number of at least 0 for each parameter in the order of the space, whose sum is 1;
// all are equal where nothing can be told.
namespace gallop::tune {

/// Why nothing can be told of an objective, or of all of them: there are too few trials, or all
/// came to the same. Empty where something can.
std::string no_importance_reason(const Study& study, std::optional<size_t> objective);

struct PedAnovaOptions {
  /// What matters is to be among so large a share of the best trials,
  double target = 0.1;
  /// beside those in this larger share.
  double region = 1;
  /// Beside where those trials are; else beside the whole space.
  bool local = true;
  /// By the losses of one objective; else by all of them, as Pareto fronts and hypervolumes order
  /// them.
  std::optional<size_t> objective{};
};

/// By how far the density of the best trials is from that of the others (Watanabe, Bansal and
/// Hutter, "PED-ANOVA", 2023), where a parameter has a value (Ito, "Conditional PED-ANOVA", 2026).
/// Throws UsageError unless 0 < target < region <= 1 and there is such an objective.
std::vector<double> ped_anova(const Study& study, const PedAnovaOptions& options = {});

struct FanovaOptions {
  int64_t trees = 64;
  int64_t depth = 64;  ///< At most.
  size_t objective = 0;
};

/// The share of the variance of an objective over the space that a parameter explains alone, by
/// random forests (Hutter, Hoos and Leyton-Brown, "An efficient approach for assessing
/// hyperparameter importance", 2014). Values count as they are drawn: uniform on their scale,
/// choices by their weights. Where a parameter is inactive, its value does not matter, and any one
/// stands for it. Throws UsageError where there is no such objective, or no tree.
std::vector<double> fanova(const Study& study, const FanovaOptions& options = {});

}  // namespace gallop::tune
