#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>

#include "gallop/base/file.h"
#include "gallop/base/text.h"
#include "gallop/track/run_index.h"
#include "gallop/ui/api/answer.h"
#include "gallop/ui/api/query.h"
#include "gallop/ui/runs.h"

namespace gallop::ui::api {

/// The runs that match a filter (track::RunFilter), sorted by a column (track::RunColumn; empty:
/// newest first). Runs without a value are last in both directions. Throws UsageError.
struct RunOrder {
  std::string filter, sort;
  bool descending = false;
};
std::vector<const track::RunRow*> chosen_runs(const track::RunIndex& index, const RunOrder& order);

/// The runs in the query's parameter `runs`, without duplicates. Throws UsageError if it is empty,
/// Refusal (404) for an unknown run.
std::vector<std::string> named_runs(Runs& runs, const Query& query);

/// The index row of a run. Throws Refusal (404).
track::RunRow row_of(Runs& runs, const std::string& name);

/// The parsed content of one of a run's files.
template <typename T>
struct Kept {
  fs::path run;
  T value;
};

/// Calls `read` with the folder of the run in the query's parameter `name`. Throws Refusal (404) if
/// there is no such run, or it has no `noun`.
template <typename T>
Kept<T> kept_by_run(Runs& runs, const Query& query, const char* noun,
                    std::optional<T> (*read)(const fs::path&)) {
  const std::string name = row_of(runs, query.needed("name")).name;
  const fs::path folder = runs.path_of(name);
  std::optional<T> value = read(folder);
  if (!value) throw Refusal(404, fmt::format("'{}' has no {}", printable(name), noun));
  return {folder, std::move(*value)};
}

/// Runs with the same value in a column; an empty column puts all runs into one group.
struct RunGroup {
  std::string value;
  std::vector<std::string> runs;
};
/// Groups ordered by value, numbers before strings. Throws UsageError.
std::vector<RunGroup> groups_of(const track::RunIndex& index, const std::string& column,
                                const std::string& filter);

}  // namespace gallop::ui::api
