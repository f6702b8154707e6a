#pragma once

#include <exception>
#include <string>
#include <vector>

#include "gallop/app/command.h"
#include "gallop/base/error.h"

namespace gallop::app {

/// Runs the command in a program's arguments (without those of take_plugin_files()), or prints the
/// list of commands. Throws the command's errors, and UsageError for an unknown command.
ExitCode run_program(const std::vector<std::string>& arguments, const CommandContext& context);

/// Prints the error that ended the program on standard error, and returns the exit code.
ExitCode report_error(const std::exception& error);

}  // namespace gallop::app
