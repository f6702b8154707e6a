#pragma once

#include <string>

#include "gallop/base/file.h"

namespace gallop {

/// The path with "~/" at its beginning replaced by the home folder, if that is known.
fs::path expand_home(const std::string& path);

}  // namespace gallop
