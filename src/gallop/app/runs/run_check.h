#pragma once

#include <string>
#include <vector>

#include "gallop/base/file.h"

namespace gallop::app {

/// What was found of one thing that belongs to a run.
struct Finding {
  std::string of;  ///< "program", "code", "data", "machine", "log", "checkpoints".
  bool is_same = true;
  std::string text;  ///< "the same: ...", or what has changed.
};

/// Compares what a run has recorded of itself with what is there now, and reads its own files.
/// Another machine is told of and counts as the same. Throws nothing for what is damaged or gone:
/// that is a finding.
std::vector<Finding> check_run(const fs::path& run);

/// Whether all are.
bool is_same(const std::vector<Finding>& findings);

/// A line each.
void print(const std::vector<Finding>& findings);

}  // namespace gallop::app
