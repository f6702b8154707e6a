#pragma once

#include <string>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::data {

/// Class names, one a line; empty lines are left out. Throws DataError where the file cannot be
/// read.
std::vector<std::string> read_class_names(const fs::path& path);

/// The same, none where there is no such file.
std::vector<std::string> read_class_names_if_there(const fs::path& path);

}  // namespace gallop::data
