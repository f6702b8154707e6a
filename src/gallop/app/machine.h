#pragma once

#include <string>
#include <utility>
#include <vector>

namespace gallop::app {

/// Information about this machine and program: pairs of name and value.
using MachineReport = std::vector<std::pair<std::string, std::string>>;
MachineReport describe_machine();

}  // namespace gallop::app
