#pragma once

#include <sys/stat.h>

#include <string>
#include <vector>

#include "gallop/base/file.h"

namespace gallop {

/// Changes when a file changes: inode number, size and modification time.
std::string file_state(const struct stat& info);

/// The same with the file's absolute path. Throws DataError where it is not there.
std::string file_state(const fs::path& path);

/// States of files, in this order; those that are not there are left out.
std::string file_states(const std::vector<fs::path>& paths);

/// Identity of what is made of files: what that is, and the present state of each. Throws as
/// file_state() does.
std::string identity_of(const std::string& kind, const std::vector<fs::path>& files);

}  // namespace gallop
