#pragma once

#include <exception>
#include <string>
#include <vector>

#include "gallop/app/command.h"
#include "gallop/base/error.h"

namespace gallop::app {

/// Runs the command that a program's arguments name, without those of take_plugin_files(), or says
/// what there is. Throws what the command throws, and UsageError where there is no such command.
ExitCode run_program(const std::vector<std::string>& arguments, const CommandContext& context);

/// Says in a line on standard error what has ended the program, and with which exit code it is to
/// end.
ExitCode report_error(const std::exception& error);

}  // namespace gallop::app
