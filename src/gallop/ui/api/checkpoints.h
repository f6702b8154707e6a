#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::ui::api {

/// What the manifest of a checkpoint says of it; nothing of what it holds is read.
struct CheckpointRow {
  std::string name;
  int64_t step = 0, bytes = 0;
  double time = 0;                   ///< Seconds since 1970, when it was written.
  std::vector<std::string> marks{};  ///< "latest", "best".
};

/// The complete checkpoints of a run in the order of their steps; what cannot be read is left out.
std::vector<CheckpointRow> read_checkpoints(const fs::path& run);

}  // namespace gallop::ui::api
