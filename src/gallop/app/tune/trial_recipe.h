#pragma once

#include "gallop/base/file.h"
#include "gallop/tune/study.h"

namespace gallop::app {

/// Writes the recipe that a trial has trained, in full. Throws UsageError where the study's trials
/// run a command.
void write_trial_recipe(const fs::path& file, const tune::Study& study, const tune::Trial& trial);

}  // namespace gallop::app
