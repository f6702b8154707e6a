#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "gallop/base/file.h"
#include "gallop/track/run_summary.h"

namespace gallop::track {

/// Reads runs again and again: of the log of one that is trained only what has been written since
/// the last time. Several threads may share one.
class RunReader {
 public:
  RunReader();
  ~RunReader();

  /// Nothing that is wrong with the run is thrown: see RunSummary::trouble.
  RunSummary read(const fs::path& folder);

 private:
  class LogSummary;
  void read_into(RunSummary& run, const fs::path& folder);

  std::mutex mutex_;
  std::map<fs::path, std::unique_ptr<LogSummary>> growing_;  ///< By the run's folder.
};

}  // namespace gallop::track
