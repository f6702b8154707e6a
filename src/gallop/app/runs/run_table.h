#pragma once

#include <string>
#include <vector>

#include "gallop/track/run_index.h"

namespace gallop::app {

/// Options of a table of runs.
struct TableConfig {
  std::string filter;  ///< See track::RunFilter.
  std::string sort;    ///< A column, empty for `created`.
  bool descending = false;
  std::vector<std::string> columns;  ///< In addition to name, created, state, time and steps.
  int64_t most = 0;                  ///< Number of runs to show, the last ones; 0 for all.
};

struct RunTable {
  std::vector<std::string> columns;             ///< "name", "created", ..., "metrics.accuracy".
  std::vector<std::vector<std::string>> cells;  ///< Empty if a run has no value.
  int64_t chosen = 0, all = 0;
};

/// Makes the table. Runs without a value in the sorted column come first. Throws UsageError if no
/// run has a column, and as track::RunFilter does.
RunTable make_table(const track::RunIndex& index, const TableConfig& config);

/// Default columns: accuracy and loss of the last evaluation, if any run has them.
std::vector<std::string> usual_columns(const track::RunIndex& index);

/// The table as text, with rounded numbers. If it exceeds lines of `letters` characters, long names
/// are truncated and the last columns are omitted, which a line at the end states; 0: unlimited.
std::string to_text(const RunTable& table, size_t letters);
/// The table as CSV (RFC 4180) and as JSON, with all digits.
std::string to_csv(const RunTable& table);
std::string to_json(const RunTable& table);

/// Seconds since 1970 as "2026-03-01 12:00" in the time zone of this machine; empty for 0.
std::string local_time(double seconds);

}  // namespace gallop::app
