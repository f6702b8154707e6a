#pragma once

#include <memory>
#include <string>

#include "gallop/base/file.h"
#include "gallop/tune/store.h"

namespace gallop::tune {

/// Studies in one SQLite file on a local disk. One process at a time may open a study for writing,
/// enforced by a lock file beside it; others may read.
///
/// Writes survive the end of the process at once, and a crash of the host after a second: the disk
/// is synced once a second instead of for each trial.
std::unique_ptr<StudyStore> open_sqlite(const fs::path& path);

/// The path of a file beside an SQLite file that belongs to one study: "studies.db.NAME.SUFFIX".
fs::path file_beside(const fs::path& path, const std::string& study, const char* suffix);

}  // namespace gallop::tune
