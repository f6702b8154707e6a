#pragma once

#include <map>
#include <string>

#include "gallop/base/file.h"

namespace gallop::ui::api {

/// Where each option of a run comes from ("default", "command line", "my.yaml:3:7"), by its path:
/// its origins.yaml, in which each line ends with a comment that says so. None where a run has no
/// such file, or a damaged one.
std::map<std::string, std::string> read_origins(const fs::path& run);

}  // namespace gallop::ui::api
