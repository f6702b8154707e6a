#pragma once

#include "gallop/tune/pruner.h"

namespace gallop::tune {

/// Compares trials at rungs, whose steps grow by a factor, and stops them there unless they are
/// among the best `1 / reduction_factor` of those that have reached the rung so far; the first few
/// continue if they are the best. None waits for another. (Jamieson and Talwalkar, "Non-stochastic
/// best arm identification and hyperparameter optimization", 2016; asynchronous as in Li et al., "A
/// system for massively parallel hyperparameter tuning", 2020.)
struct SuccessiveHalvingConfig {
  int64_t min_resource = 0;  ///< Step of the first rung; 0: a hundredth of the first whole trial.
  int64_t max_resource = 0;  ///< From this step on no trial ends; 0: there is no such step.
  /// Above 0: so many rungs, at max_resource divided by reduction_factor, by its square, and so on,
  /// without those below 1; min_resource is 0 then.
  int64_t rungs = 0;
  int64_t reduction_factor = 4;
  int64_t min_early_stopping_rate = 0;  ///< Number of rungs that are omitted at the beginning.
  int64_t bootstrap_count = 0;          ///< Number of trials that end at each rung in any case.
};

void visit(config::Visitor& visitor, SuccessiveHalvingConfig& config);
std::unique_ptr<Pruner> make_successive_halving(const SuccessiveHalvingConfig& config,
                                                const StudySettings& settings);

/// Common options of pruners with rungs.
extern const config::Field kReductionFactor, kBootstrapCount;

}  // namespace gallop::tune
