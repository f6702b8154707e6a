#pragma once

#include <vector>

#include "gallop/app/recipe.h"
#include "gallop/app/registries.h"
#include "gallop/plot/plot.h"

namespace gallop::app {

/// The learning rate of a recipe along its run (its factor where the rate is left open), its
/// momentum where the schedule has one, and what the recipe varies. Opens the data only where the
/// schedule counts in what they decide: steps of a run that is given in epochs, or epochs of one
/// given in steps.
std::vector<plot::XyPlot> schedule_plots(const Registries& registries,
                                         const ResolvedRecipe& resolved);

/// The factor of each schedule with its default options over a run of 10 epochs, but for those that
/// are made of others, which have no defaults, and those that follow evaluations.
std::vector<plot::XyPlot> all_schedules(const Registries& registries);

}  // namespace gallop::app
