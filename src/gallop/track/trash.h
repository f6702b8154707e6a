#pragma once

#include <string>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::track {

/// Throws UsageError if the run is training.
void check_idle(const fs::path& folder);

/// Moves a run's folder to RUNS/.trash/NAME, or RUNS/.trash/.2/NAME and so on if that exists, and
/// returns its new path. Throws UsageError if it is training, DeviceError if it cannot be moved.
fs::path move_to_trash(const fs::path& folder);

/// The names of the runs in the trash of a folder, sorted.
std::vector<std::string> names_in_trash(const fs::path& runs);

/// Restores the last deleted run of this name to RUNS/NAME. Throws UsageError if there is none in
/// the trash, or if a run exists in its place.
fs::path restore_from_trash(const fs::path& runs, const std::string& name);

}  // namespace gallop::track
