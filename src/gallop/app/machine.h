#pragma once

#include <string>
#include <utility>
#include <vector>

namespace gallop::app {

/// Lines about this machine and this program: a name and a value each.
using MachineReport = std::vector<std::pair<std::string, std::string>>;
MachineReport describe_machine();

}  // namespace gallop::app
