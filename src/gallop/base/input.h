#pragma once

#include <cstdint>
#include <string>

#include "gallop/base/file.h"

namespace gallop {

/// The whole of a file, or of a pipe such as /dev/stdin, whose end it waits for. Throws DataError
/// where it cannot be read or is longer than `max_bytes`.
std::string read_input(const fs::path& path, int64_t max_bytes);

}  // namespace gallop
