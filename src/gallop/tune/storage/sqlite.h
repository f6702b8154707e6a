#pragma once

#include <memory>
#include <string>

#include "gallop/base/file.h"
#include "gallop/tune/store.h"

namespace gallop::tune {

/// Studies in one SQLite file, on a disk of this host. One process at a time may open a study; a
/// lock beside the file says which, and goes with it. Others may read.
///
/// What is written survives the end of the process at once, and that of the host after a second:
/// the disk is waited for once a second and not for each trial.
std::unique_ptr<StudyStore> open_sqlite(const fs::path& path);

/// A file beside an SQLite file that belongs to one of its studies: "studies.db.NAME.SUFFIX".
fs::path file_beside(const fs::path& path, const std::string& study, const char* suffix);

}  // namespace gallop::tune
