#pragma once

#include <string>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::app {

/// The result of verifying one aspect of a run.
struct Finding {
  std::string of;  ///< "program", "code", "data", "machine", "log", "checkpoints".
  bool is_same = true;
  std::string text;  ///< "the same: ...", or what has changed.
};

/// Compares a run's recorded provenance with the current state, and verifies its own files. Another
/// machine is reported, but counts as the same. Damaged or missing files are findings, not
/// exceptions.
std::vector<Finding> check_run(const fs::path& run);

/// Whether all findings are the same.
bool is_same(const std::vector<Finding>& findings);

/// Prints each finding in a line.
void print(const std::vector<Finding>& findings);

}  // namespace gallop::app
