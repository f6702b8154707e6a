#pragma once

#include "gallop/tune/pruner.h"

namespace gallop::tune {

/// Successive halving: trials are compared at rungs, whose steps grow by a factor, and stopped
/// there unless they are among the best `1 / reduction_factor` of those that have reached the rung
/// so far; the first few continue if they are the best. Asynchronous: no trial waits for another.
/// (Jamieson and Talwalkar, "Non-stochastic best arm identification and hyperparameter
/// optimization", 2016; Li et al., "A system for massively parallel hyperparameter tuning", 2020.)
struct SuccessiveHalvingConfig {
  int64_t min_resource = 0;  ///< Step of the first rung; 0: 1% of the first complete trial.
  int64_t max_resource = 0;  ///< Step from which no trial is pruned; 0: none.
  /// If above 0, the number of rungs, at max_resource / reduction_factor, / its square, and so on,
  /// without those below 1; min_resource is then 0.
  int64_t rungs = 0;
  int64_t reduction_factor = 4;
  int64_t min_early_stopping_rate = 0;  ///< Number of first rungs to omit.
  int64_t bootstrap_count = 0;          ///< Number of trials that end at each rung in any case.
};

void visit(config::Visitor& visitor, SuccessiveHalvingConfig& config);
std::unique_ptr<Pruner> make_successive_halving(const SuccessiveHalvingConfig& config,
                                                const StudySettings& settings);

/// Options common to pruners with rungs.
extern const config::Field kMinResource, kReductionFactor, kBootstrapCount;

}  // namespace gallop::tune
