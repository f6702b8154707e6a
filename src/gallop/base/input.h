#pragma once

#include <cstdint>
#include <string>

#include "gallop/base/file.h"

namespace gallop {

/// Reads a whole file, or a pipe such as /dev/stdin until its end. Throws DataError if it cannot be
/// read or is longer than `max_bytes`.
std::string read_input(const fs::path& path, int64_t max_bytes);

}  // namespace gallop
