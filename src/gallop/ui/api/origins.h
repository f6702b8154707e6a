#pragma once

#include <map>
#include <string>

#include "gallop/base/file.h"

namespace gallop::ui::api {

/// The origin of each option of a run ("default", "command line", "my.yaml:3:7"), by its path, from
/// the comments at the line ends of origins.yaml. Empty if that file is missing or damaged.
std::map<std::string, std::string> read_origins(const fs::path& run);

}  // namespace gallop::ui::api
