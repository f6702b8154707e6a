#pragma once

#include <cstdint>

#include "gallop/app/session.h"
#include "gallop/base/file.h"

namespace gallop::app {

/// Saves the first samples of a recipe's training, at most `count` of its first batch, in the run's
/// folder (track/run_samples.h), replacing earlier ones; none for a count of 0. They are read and
/// augmented separately from the training. Throws DeviceError.
void keep_first_samples(const fs::path& run, const Session& session, int64_t count);

}  // namespace gallop::app
