#pragma once

#include <string>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/track/log.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}

namespace gallop::app {

/// The arguments `RUN...`, `--runs FOLDER` and `--studies FOLDER` of an action.
struct WhichRuns {
  std::vector<std::string> names;
  std::string runs = "runs", studies = "studies";

  void add_to(CLI::App& parser, bool several);
  /// The folders of the runs: by name, "SWEEP/0007" for a trial's, or by path. Throws UsageError
  /// for unknown runs, with the nearest name.
  std::vector<fs::path> find() const;
};

/// The log of a run; empty if there is none, as when the run died before it began.
track::Log log_of(const fs::path& run);

}  // namespace gallop::app
