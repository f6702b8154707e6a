#pragma once

#include <cstdint>
#include <string>

#include "gallop/app/distributed_context.h"
#include "gallop/app/recipe.h"
#include "gallop/base/stop.h"
#include "gallop/train/prove/comparison.h"

namespace gallop::app {

struct ProveConfig {
  int64_t steps = 5;
  std::string reference = "auto";  ///< "fp64", "fp32" or "auto".
};

/// Steps of a training next to a reference.
struct ProvenTraining {
  train::Proof proof;      ///< On rank 0 only.
  std::string training;    ///< "r: steps 1 to 5 of 16 images; adamw, ..."
  std::string reference;   ///< "fp64, eager, ..."
  std::string difference;  ///< The first, in one line; empty if all steps are proven.
};

/// Throws UsageError if processes have only parts of what is compared.
void require_provable_strategy(const Recipe& recipe, int processes);

/// Runs the first steps of a training twice, as 'gallop train' does and with copies of outputs and
/// gradients, and compares them with a reference of LibTorch's operators in one process
/// (train/prove/comparison.h). All processes of the group call it together. Returns nothing of
/// value if `stop` is requested. Throws UsageError for what cannot be compared.
ProvenTraining prove_training(const ResolvedRecipe& resolved, const std::string& runs,
                              const DistributedContext& context, const ProveConfig& config,
                              const StopRequest& stop);

}  // namespace gallop::app
