#pragma once

#include <string>
#include <vector>

#include "gallop/track/run_index.h"

namespace gallop::app {

/// What a table of runs is to show.
struct TableConfig {
  std::string filter;  ///< See track::RunFilter.
  std::string sort;    ///< A column, empty for `created`.
  bool descending = false;
  std::vector<std::string> columns;  ///< Beside name, created, state, time and steps.
  int64_t most = 0;                  ///< The last of these many, 0 for all.
};

struct RunTable {
  std::vector<std::string> columns;             ///< "name", "created", ..., "metrics.accuracy".
  std::vector<std::vector<std::string>> cells;  ///< Empty where a run has none.
  int64_t chosen = 0, all = 0;
};

/// Runs that lack what is sorted by come first. Throws UsageError where no run has a column, and
/// as track::RunFilter does.
RunTable make_table(const track::RunIndex& index, const TableConfig& config);

/// Columns that say most: accuracy and loss of the last evaluation, where any run has them.
std::vector<std::string> usual_columns(const track::RunIndex& index);

/// With numbers rounded. Of more than fits in lines of so many letters, long names are cut short
/// and the last columns are left out, which a line at the end says; 0: there is room for all.
std::string to_text(const RunTable& table, size_t letters);
/// As CSV (RFC 4180) and JSON, with all digits.
std::string to_csv(const RunTable& table);
std::string to_json(const RunTable& table);

/// Seconds since 1970 as "2026-03-01 12:00" in the time zone of this machine; empty for 0.
std::string local_time(double seconds);

}  // namespace gallop::app
