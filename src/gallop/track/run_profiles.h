#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::track {

// The profiles of a run, each named by the last step that it covers:
//
//     profiles/step-1000.json              the profile; it exists once this file does
//     profiles/step-1000/rank-0.json.gz    the trace of each process (Chrome trace event format)

/// Publishes a profile with the traces of all processes, compressed, by rank. A profile of the same
/// step is replaced. Throws DeviceError.
void write_run_profile(const fs::path& run, int64_t step, const std::string& json,
                       const std::vector<std::string>& traces);

/// The steps of a run's profiles, in increasing order.
std::vector<int64_t> run_profiles_of(const fs::path& run);

/// The profile of a step as JSON; nothing if there is none. Throws DataError if it cannot be read.
std::optional<std::string> read_run_profile(const fs::path& run, int64_t step);

/// The compressed trace of a process; nothing if there is none. Throws DataError if it cannot be
/// read.
std::optional<std::string> read_run_trace(const fs::path& run, int64_t step, int64_t rank);

/// Removes the oldest profiles, so that at most so many are left. Throws DeviceError.
void keep_run_profiles(const fs::path& run, int64_t most);

/// Removes the profiles of later steps, and what was left of unfinished ones. Throws DeviceError.
void remove_run_profiles_after(const fs::path& run, int64_t step);

}  // namespace gallop::track
