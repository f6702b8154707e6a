#pragma once

#include <cstdint>

#include "gallop/app/prepared_recipe.h"
#include "gallop/base/file.h"

namespace gallop::app {

/// Keeps the first samples that a recipe's training sees, at most so many of its first batch, in
/// the run's folder (track/run_samples.h), in place of earlier ones; none for a count of 0. They
/// are read and augmented besides the training, which is not touched. Throws DeviceError.
void keep_first_samples(const fs::path& run, const PreparedRecipe& prepared, int64_t count);

}  // namespace gallop::app
