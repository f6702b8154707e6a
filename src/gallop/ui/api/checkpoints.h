#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::ui::api {

/// The metadata of a checkpoint in its manifest; its contents are not read.
struct CheckpointRow {
  std::string name;
  int64_t step = 0, bytes = 0;
  double time = 0;                   ///< When it was written, in seconds since 1970.
  std::vector<std::string> marks{};  ///< "latest", "best".
};

/// The complete checkpoints of a run, ordered by step; unreadable ones are omitted.
std::vector<CheckpointRow> read_checkpoints(const fs::path& run);

}  // namespace gallop::ui::api
