#pragma once

#include "gallop/tune/pruner.h"

namespace gallop::tune {

/// Asynchronous successive halving (Li et al., "A system for massively parallel hyperparameter
/// tuning", 2020).
///
/// "promotion" (algorithm 2 of the paper): each trial pauses at its rung with its checkpoint, and
/// resumes to the next one once it is among the best `1 / reduction_factor` there; if none can be
/// promoted, a new trial is started. "stopping" (as in Ray Tune): a trial continues at a rung
/// unless it is worse than the best `1 / reduction_factor` of those before it.
struct AshaConfig {
  std::string variant = "stopping";
  int64_t min_resource = 1;  ///< Step of the first rung.
  /// Step at which a trial is complete: it is not stopped there, nor at later rungs; 0: unknown.
  int64_t max_resource = 0;
  int64_t reduction_factor = 4;
};

void visit(config::Visitor& visitor, AshaConfig& config);
std::unique_ptr<Pruner> make_asha(const AshaConfig& config, const StudySettings& settings);

}  // namespace gallop::tune
