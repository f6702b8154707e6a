#pragma once

#include <string>
#include <vector>

#include "gallop/app/command.h"

namespace gallop::app {

/// `gallop runs ACTION`, in the order of `gallop runs --help`.
const std::vector<Command>& runs_actions();

ExitCode runs_list(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode runs_show(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode runs_compare(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode runs_cost(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode runs_verify(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode runs_clean(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode runs_reproduce(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode runs_import(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode runs_push(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode runs_export(const CommandContext& command, const std::vector<std::string>& arguments);
// runs_label.cpp
ExitCode runs_tag(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode runs_note(const CommandContext& command, const std::vector<std::string>& arguments);
// runs_delete.cpp
ExitCode runs_delete(const CommandContext& command, const std::vector<std::string>& arguments);
ExitCode runs_restore(const CommandContext& command, const std::vector<std::string>& arguments);

}  // namespace gallop::app
