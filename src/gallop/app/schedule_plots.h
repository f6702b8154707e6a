#pragma once

#include <vector>

#include "gallop/app/recipe.h"
#include "gallop/app/registries.h"
#include "gallop/plot/plot.h"

namespace gallop::app {

/// Plots the learning rate of a recipe along its run (its factor if the rate is unresolved), its
/// momentum if scheduled, and other scheduled values. Opens the data only if the length depends on
/// them: a schedule in steps for a run in epochs, or vice versa.
std::vector<plot::XyPlot> schedule_plots(const Registries& registries,
                                         const ResolvedRecipe& resolved);

/// Plots the factor of each schedule with its default options over 10 epochs, except for schedules
/// that require options and those that depend on evaluations.
std::vector<plot::XyPlot> all_schedules(const Registries& registries);

}  // namespace gallop::app
