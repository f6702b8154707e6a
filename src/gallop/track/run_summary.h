#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "gallop/base/file.h"
#include "gallop/track/labels.h"
#include "gallop/track/log.h"

namespace gallop::track {

enum class RunState {
  kTraining,    ///< A process has its lock.
  kFinished,    ///< Trained to its end.
  kStopped,     ///< Was stopped, and can be resumed.
  kDied,        ///< Ended without a record of its end.
  kUnreadable,  ///< Its recipe or log cannot be read.
  kFailed,      ///< Ended with an error.
};

/// "training", "finished", "stopped", "died", "unreadable", "failed".
const char* state_name(RunState state);

/// The summary of a metric. Non-finite values count as last, but not as least or most.
struct MetricSummary {
  double last = 0, least = 0, most = 0;
  int64_t last_step = 0, least_step = 0, most_step = 0;
  int64_t count = 0;  ///< Number of points.

  /// Adds a later point.
  void add(int64_t step, double value);
};

/// The summary of a run in a table.
struct RunSummary {
  std::string name;
  RunState state = RunState::kDied;
  double created = 0;  ///< Seconds since 1970.
  double seconds = 0;  ///< From its start to its last record.
  int64_t steps = 0;   ///< The last reported step.
  /// Options of its recipe by their path, "optimizer.lr".
  std::map<std::string, std::string> params;
  /// By point name (track/points.h).
  std::map<std::string, MetricSummary> metrics;
  Labels labels;
  std::string trouble;  ///< Read errors in one line; empty if there are none.
  /// end_text() of its end; empty if the summary comes from the index.
  std::string end;
};

/// How a run ended, with the reason if the log has it: "stopped", "failed: step 7: the loss is not
/// finite". Takes a record of kind "end".
std::string end_text(const Record& end);
RunState state_of_end(const Record& end);

/// The options of a run's recipe by path; a list is one value. Throws DataError if the file is
/// missing or damaged.
std::map<std::string, std::string> recipe_options(const fs::path& folder);

/// Reads a run. Errors are not thrown but stored in `trouble`.
RunSummary summarize_run(const fs::path& folder);

}  // namespace gallop::track
