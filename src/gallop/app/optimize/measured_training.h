#pragma once

#include "gallop/app/distributed_context.h"
#include "gallop/app/recipe.h"
#include "gallop/base/stop.h"

namespace gallop::app {

/// Prints the settings of a recipe (optimize/experiments.h) as a line of JSON. With `trains`, then
/// trains it again and again without storing anything, until `stop`, and prints what it did in
/// each tenth of a second or so, as PacedTraining reads it. All processes of `context` call this
/// together, and rank 0 prints; they may be suspended for any time. Throws as Session does.
void measure_training(ResolvedRecipe resolved, bool trains, const DistributedContext& context,
                      const StopRequest& stop);

}  // namespace gallop::app
