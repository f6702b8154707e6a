#pragma once

#include <sys/stat.h>

#include <string>
#include <vector>

#include "gallop/base/file.h"

namespace gallop {

/// Changes when a file changes: inode number, size and modification time.
std::string file_state(const struct stat& info);

/// The same with the file's absolute path. Throws DataError if the file does not exist.
std::string file_state(const fs::path& path);

/// The states of files, in this order; missing files are omitted.
std::string file_states(const std::vector<fs::path>& paths);

/// The identity of a result derived from files: its kind, and the current state of each file.
/// Throws the errors of file_state().
std::string identity_of(const std::string& kind, const std::vector<fs::path>& files);

}  // namespace gallop
