#pragma once

#include <string>

#include "gallop/base/file.h"

namespace gallop::track {

/// Throws UsageError where somebody trains in the run.
void check_idle(const fs::path& folder);

/// Moves a run's folder to RUNS/.trash/NAME, or NAME.2 and so on where that is taken, and returns
/// where it is. Throws UsageError where somebody trains in it, DeviceError where it cannot be
/// moved.
fs::path move_to_trash(const fs::path& folder);

/// Moves the run that was moved there last back to RUNS/NAME. Throws UsageError where there is none
/// in the trash, or one in its place.
fs::path restore_from_trash(const fs::path& runs, const std::string& name);

}  // namespace gallop::track
