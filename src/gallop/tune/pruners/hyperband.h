#pragma once

#include "gallop/tune/pruner.h"

namespace gallop::tune {

/// Several brackets of successive halving with different first rungs, to depend less on early
/// reports (Li et al., "Hyperband: a novel bandit-based approach to hyperparameter optimization",
/// 2018). The bracket of a trial is drawn with the weights of bracket_sizes(). With the sampler tpe
/// it is BOHB (Falkner et al., 2018), except that samplers see the trials of all brackets.
struct HyperbandConfig {
  int64_t min_resource = 1;
  int64_t max_resource = 0;  ///< Steps of a complete trial; 0: those of the first complete one.
  int64_t reduction_factor = 3;
  int64_t bootstrap_count = 0;
};

void visit(config::Visitor& visitor, HyperbandConfig& config);

/// The relative number of trials of each bracket, the most aggressive one first. For 81 steps and a
/// factor of 3: 81, 34, 15, 8 and 5. The number of brackets is limited to what int64_t can
/// represent.
std::vector<int64_t> bracket_sizes(int64_t min_resource, int64_t max_resource, int64_t factor);

std::unique_ptr<Pruner> make_hyperband(const HyperbandConfig& config,
                                       const StudySettings& settings);

}  // namespace gallop::tune
