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

/// The runs of a folder that a formula chooses (track::RunFilter), sorted by a column
/// (track::RunColumn; empty: created, the newest first). What has none of it comes last in either
/// direction. Throws UsageError.
struct RunOrder {
  std::string filter, sort;
  bool descending = false;
};
std::vector<const track::RunRow*> chosen_runs(const track::RunIndex& index, const RunOrder& order);

/// The runs that the value `runs` of a query names, each once. Throws UsageError where it names
/// none, Refusal (404) for what is no run.
std::vector<std::string> named_runs(Runs& runs, const Query& query);

/// What is known of one run. Throws Refusal (404).
track::RunRow row_of(Runs& runs, const std::string& name);

/// What one of the files of a run says.
template <typename T>
struct Kept {
  fs::path run;
  T value;
};

/// As `read` finds it in the folder of the run that the value `name` of a query names. Throws
/// Refusal (404) where there is no such run, or it has no `noun`.
template <typename T>
Kept<T> kept_by_run(Runs& runs, const Query& query, const char* noun,
                    std::optional<T> (*read)(const fs::path&)) {
  const std::string name = row_of(runs, query.needed("name")).name;
  const fs::path folder = runs.path_of(name);
  std::optional<T> value = read(folder);
  if (!value) throw Refusal(404, fmt::format("'{}' has no {}", printable(name), noun));
  return {folder, std::move(*value)};
}

/// Runs that have the same text in a column, which may be empty: all are one group then.
struct RunGroup {
  std::string value;
  std::vector<std::string> runs;
};
/// Groups in the order of their values, numbers before texts. Throws UsageError.
std::vector<RunGroup> groups_of(const track::RunIndex& index, const std::string& column,
                                const std::string& filter);

}  // namespace gallop::ui::api
