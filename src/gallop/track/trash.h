#pragma once

#include <string>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::track {

/// Throws UsageError where the run is in training.
void check_idle(const fs::path& folder);

/// Moves a run's folder to RUNS/.trash/NAME, or RUNS/.trash/.2/NAME and so on where a run of this
/// name is there already, and returns where it is. Throws UsageError where it is in training,
/// DeviceError where it cannot be moved.
fs::path move_to_trash(const fs::path& folder);

/// The names of the runs in the trash of a folder, in order.
std::vector<std::string> names_in_trash(const fs::path& runs);

/// Moves the run that was moved there last back to RUNS/NAME. Throws UsageError where there is none
/// in the trash, or one in its place.
fs::path restore_from_trash(const fs::path& runs, const std::string& name);

}  // namespace gallop::track
