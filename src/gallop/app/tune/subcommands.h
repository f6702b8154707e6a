#pragma once

#include <string>
#include <vector>

#include "gallop/app/command.h"

namespace gallop::app {

/// The actions `gallop tune ACTION`, in the order of `gallop tune --help`. Each is in a file named
/// after it, or shares one with related actions.
const std::vector<Command>& tune_actions();

/// `gallop tune SWEEP`.
ExitCode tune_sweep(const CommandContext& command, const std::vector<std::string>& args);
// study_show.cpp
ExitCode tune_status(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode tune_best(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode tune_export(const CommandContext& command, const std::vector<std::string>& arguments);
// study_importance.cpp
ExitCode tune_importance(const CommandContext& command, const std::vector<std::string>& arguments);
// study_plot.cpp
ExitCode tune_plot(const CommandContext& command, const std::vector<std::string>& arguments);
// study_lineage.cpp
ExitCode tune_lineage(const CommandContext& command, const std::vector<std::string>& arguments);
// study_control.cpp
ExitCode tune_stop(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode tune_resume(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode tune_retry(const CommandContext& command, const std::vector<std::string>& arguments);
// study_create.cpp
ExitCode tune_create(const CommandContext& command, const std::vector<std::string>& arguments);
// ask_tell.cpp
ExitCode tune_ask(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode tune_tell(const CommandContext& command, const std::vector<std::string>& arguments);
// study_options.cpp
ExitCode tune_options(const CommandContext& command, const std::vector<std::string>& arguments);

}  // namespace gallop::app
