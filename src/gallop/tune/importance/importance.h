#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gallop/tune/study.h"

// Hyperparameter importance. All functions use the complete trials with finite losses, and return a
// non-negative importance for each parameter, in the order of the space, with sum 1; uniform if the
// importance cannot be estimated.
namespace gallop::tune {

/// Why the importance for one objective, or for all, cannot be estimated: too few trials, or equal
/// losses. Empty if it can be.
std::string no_importance_reason(const Study& study, std::optional<size_t> objective);

struct PedAnovaOptions {
  /// A parameter is important if it separates this fraction of the best trials
  double target = 0.1;
  /// from this larger fraction of them.
  double region = 1;
  /// Compare with the distribution of the latter trials; otherwise with the whole space.
  bool local = true;
  /// The objective whose losses rank the trials; otherwise Pareto fronts and hypervolumes do.
  std::optional<size_t> objective{};
};

/// PED-ANOVA: the divergence between the densities of the best trials and of the larger fraction
/// (Watanabe, Bansal and Hutter, 2023), where a parameter is active (Ito, "Conditional PED-ANOVA",
/// 2026). Throws UsageError unless 0 < target < region <= 1 and the objective exists.
std::vector<double> ped_anova(const Study& study, const PedAnovaOptions& options = {});

struct FanovaOptions {
  int64_t trees = 64;
  int64_t depth = 64;  ///< Maximum depth.
  size_t objective = 0;
};

/// fANOVA: the variance of an objective over the space that a parameter explains alone, relative to
/// the sum over all parameters, by random forests (Hutter, Hoos and Leyton-Brown, "An efficient
/// approach for assessing hyperparameter importance", 2014). The space is weighted by the sampling
/// distribution: uniform on a parameter's scale, choices by their weights. The value of an inactive
/// parameter is sampled. Throws UsageError if there is no such objective, or no tree.
std::vector<double> fanova(const Study& study, const FanovaOptions& options = {});

}  // namespace gallop::tune
