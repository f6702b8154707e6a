#pragma once

#include <string>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::data {

/// Reads class names, one per line, skipping empty lines. Throws DataError if the file cannot be
/// read.
std::vector<std::string> read_class_names(const fs::path& path);

/// Like read_class_names(), but returns an empty list if the file does not exist.
std::vector<std::string> read_class_names_if_there(const fs::path& path);

}  // namespace gallop::data
