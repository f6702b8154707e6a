#pragma once

#include <string>

#include "gallop/data/skips.h"

namespace gallop::data {

/// What was skipped, to append to an error about what is missing: "; 3 skipped (...), the first:
/// ...". Empty if nothing was.
std::string skip_summary(const SkipPolicy& skips);

}  // namespace gallop::data
