#pragma once

#include "gallop/app/prepared_recipe.h"
#include "gallop/track/run_schedule.h"

namespace gallop::app {

/// The learning rate and all that changes with it at some hundred steps of a training that begins,
/// exactly as its steps will have them, unless updates are skipped.
track::RunSchedule run_schedule(PreparedRecipe& prepared);

}  // namespace gallop::app
