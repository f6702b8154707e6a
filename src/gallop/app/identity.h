#pragma once

#include "gallop/track/identity.h"

namespace gallop::app {

/// What a run records as its provenance from `step` on: this program, its plug-ins, the repository
/// around the working folder, and the data in these files and folders. Data of more than 16 GiB are
/// identified by their sizes alone.
track::IdentityQuestion identity_question(const DataPaths& data, const fs::path& runs, int64_t step,
                                          const std::vector<std::string>& plugins = {});

}  // namespace gallop::app
