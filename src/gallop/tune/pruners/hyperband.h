#pragma once

#include "gallop/tune/pruner.h"

namespace gallop::tune {

/// Several brackets of successive halving that begin to prune at different rungs, so that little
/// trust in early reports is needed (Li et al., "Hyperband: a novel bandit-based approach to
/// hyperparameter optimization", 2018). Which bracket a trial is in is drawn by bracket_sizes().
/// With the sampler tpe it is BOHB (Falkner et al., 2018): samplers see a bracket's trials only.
struct HyperbandConfig {
  int64_t min_resource = 1;
  int64_t max_resource = 0;  ///< Steps of a whole trial; 0: those of the first complete one.
  int64_t reduction_factor = 3;
  int64_t bootstrap_count = 0;
};

void visit(config::Visitor& visitor, HyperbandConfig& config);

/// How many trials each bracket is to have beside the others, the one that prunes first at the
/// front. For 81 steps and a factor of 3: 81, 34, 15, 8 and 5. No more brackets than numbers allow.
std::vector<int64_t> bracket_sizes(int64_t min_resource, int64_t max_resource, int64_t factor);

std::unique_ptr<Pruner> make_hyperband(const HyperbandConfig& config,
                                       const StudySettings& settings);

}  // namespace gallop::tune
