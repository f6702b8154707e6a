#pragma once

#include <string>

#include "gallop/base/file.h"

namespace gallop::launch {

/// Records, for the launcher of its group, the error with which this process is about to end, and
/// which it or rank 0 prints. Does nothing in a process without kCallLogsVariable, and does not
/// throw.
void record_error(const std::string& text);

/// The error that a process of a group has recorded in its folder of call logs; empty if none.
std::string read_error(const fs::path& folder, int rank);

}  // namespace gallop::launch
