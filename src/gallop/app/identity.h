#pragma once

#include "gallop/track/identity.h"

namespace gallop::app {

/// What a run is to record of itself from `step` on: this program, the repository around the
/// working folder, and the data in these files and folders. Data of more than 16 GiB are told by
/// their sizes alone.
track::IdentityQuestion identity_question(const std::vector<std::string>& data,
                                          const fs::path& runs, int64_t step);

}  // namespace gallop::app
