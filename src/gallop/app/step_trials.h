#pragma once

#include <string>
#include <vector>

#include "gallop/advise/facts.h"
#include "gallop/app/command.h"
#include "gallop/app/recipe.h"
#include "gallop/base/stop.h"

namespace gallop::app {

/// Adds to `facts.trials` those of the options that rules ask for ("train.precision=bf16"), by
/// steps on the first samples of the data, next to the recipe's own steps in interleaved rounds
/// (train/measured_choice.h); also the time of the own steps, if
/// rules ask for it.
/// `resolved` are overrides under which the recipe leaves nothing open. What cannot be measured,
/// for example because it does not fit in memory, is left out. Stops early if `stop` is requested.
void time_options(const Registries& registries, const std::string& recipe,
                  const std::vector<Override>& resolved, advise::Facts& facts,
                  const StopRequest& stop);

/// Adds to `facts.trials` those of the loader's options that rules ask for, by training with and
/// without each in processes that take turns. Leaves out what does not train.
void time_loader_options(const std::string& recipe, const std::vector<Override>& resolved,
                         advise::Facts& facts, const StopRequest& stop);

}  // namespace gallop::app
