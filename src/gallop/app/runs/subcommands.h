#pragma once

#include <string>
#include <vector>

#include "gallop/app/command.h"

namespace gallop::app {

/// `gallop runs ACTION`, in the order of `gallop runs --help`.
const std::vector<Command>& runs_actions();

ExitCode runs_list(const std::vector<std::string>& arguments);
ExitCode runs_show(const std::vector<std::string>& arguments);
ExitCode runs_compare(const std::vector<std::string>& arguments);
ExitCode runs_cost(const std::vector<std::string>& arguments);
ExitCode runs_verify(const std::vector<std::string>& arguments);
ExitCode runs_reproduce(const std::vector<std::string>& arguments);
ExitCode runs_import(const std::vector<std::string>& arguments);
ExitCode runs_push(const std::vector<std::string>& arguments);
ExitCode runs_export(const std::vector<std::string>& arguments);
// runs_label.cpp
ExitCode runs_tag(const std::vector<std::string>& arguments);
ExitCode runs_note(const std::vector<std::string>& arguments);
// runs_delete.cpp
ExitCode runs_delete(const std::vector<std::string>& arguments);
ExitCode runs_restore(const std::vector<std::string>& arguments);

}  // namespace gallop::app
