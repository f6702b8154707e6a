#pragma once

#include <string>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::data {

/// Whether `data.path` is "pipe:COMMAND", as in the webdataset library.
bool is_piped(const std::string& path);

/// Runs each of the commands "pipe:COMMAND" by sh, and stores what it writes as a file in `folder`,
/// named after the last word of the command. A command that has run in the current folder before
/// does not run again, and of several processes of a host, one runs all of them. Returns the files
/// in the order of the commands. Throws DataError if a command fails, or does not write a whole
/// archive.
std::vector<fs::path> fetch_shards(const std::vector<std::string>& commands,
                                   const fs::path& folder);

}  // namespace gallop::data
