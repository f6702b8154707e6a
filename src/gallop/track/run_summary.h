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
  kFinished,    ///< Came to its end.
  kStopped,     ///< Was asked to stop, and can go on.
  kDied,        ///< Ended without a word.
  kUnreadable,  ///< Its recipe or log cannot be read.
  kFailed,      ///< Ended with an error.
};

/// "training", "finished", "stopped", "died", "unreadable", "failed".
const char* state_name(RunState state);

/// What became of one metric. Numbers that are not finite count as last, not as least or most.
struct MetricSummary {
  double last = 0, least = 0, most = 0;
  int64_t last_step = 0, least_step = 0, most_step = 0;
  int64_t count = 0;  ///< Of its points.

  /// One more, behind all before.
  void add(int64_t step, double value);
};

/// What a table of runs shows of one.
struct RunSummary {
  std::string name;
  RunState state = RunState::kDied;
  double created = 0;  ///< Seconds since 1970.
  double seconds = 0;  ///< From its beginning to its last sign of life.
  int64_t steps = 0;   ///< The last reported step.
  /// Options of its recipe by their path, "optimizer.lr".
  std::map<std::string, std::string> params;
  /// By the names of points (track/points.h).
  std::map<std::string, MetricSummary> metrics;
  Labels labels;
  std::string trouble;  ///< What of it cannot be read, in a line; empty where all can.
  /// What end_text() says of its end. Of a run that was read, not of one that the index knows.
  std::string end;
};

/// How a run ended, and why where the log says so: "stopped", "failed: step 7: the loss is not
/// finite". Takes a record of kind "end".
std::string end_text(const Record& end);
RunState state_of_end(const Record& end);

/// The options of a run's recipe by their path; a list is one value. Throws DataError where the
/// file is missing or damaged.
std::map<std::string, std::string> recipe_options(const fs::path& folder);

/// Reads a run. Nothing that is wrong with it is thrown: see `trouble`.
RunSummary summarize_run(const fs::path& folder);

}  // namespace gallop::track
