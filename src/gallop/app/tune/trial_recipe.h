#pragma once

#include <string>

#include "gallop/app/command.h"
#include "gallop/tune/study.h"

namespace gallop::app {

/// Writes the complete recipe that a trial trained, as write_output() does. Throws UsageError if
/// the study's trials run a command.
void write_trial_recipe(const CommandContext& command, const std::string& file,
                        const tune::Study& study, const tune::Trial& trial);

}  // namespace gallop::app
