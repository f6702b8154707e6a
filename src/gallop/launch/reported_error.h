#pragma once

#include <functional>
#include <string>

#include "gallop/base/file.h"

namespace gallop::launch {

/// Records, for the launcher of its group, the error with which this process is about to end, and
/// which it or rank 0 prints. Does nothing in a process without kCallLogsVariable, and does not
/// throw.
void record_error(const std::string& text);

/// Records the error and prints it by `print`. Rank 0 prints it first: once an error is recorded,
/// other processes leave it to rank 0, which may be stopped at any time. Others record it first, so
/// that the launcher knows that the lines that it reads are those of an error.
void report_error(const std::string& text, const std::function<void()>& print);

/// The error that a process of a group has recorded in its folder of call logs; empty if none.
std::string read_error(const fs::path& folder, int rank);

}  // namespace gallop::launch
