#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "gallop/base/file.h"
#include "gallop/track/run_summary.h"

namespace gallop::track {

/// Reads runs repeatedly: of the log of a run in training only new records. Thread-safe.
class RunReader {
 public:
  RunReader();
  ~RunReader();

  /// Errors are not thrown but stored in RunSummary::trouble.
  RunSummary read(const fs::path& folder);

 private:
  class LogSummary;
  void read_into(RunSummary& run, const fs::path& folder);

  std::mutex mutex_;
  std::map<fs::path, std::unique_ptr<LogSummary>> growing_;  ///< By run folder.
};

}  // namespace gallop::track
