#pragma once

#include <string>
#include <vector>

#include "gallop/track/run_index.h"
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

/// The runs that the value `runs` of a query names. Throws UsageError where it names none, Refusal
/// (404) for what is no run.
std::vector<std::string> named_runs(Runs& runs, const Query& query);

/// What is known of one run. Throws Refusal (404).
track::RunRow row_of(Runs& runs, const std::string& name);

/// Runs that have the same text in a column, which may be empty: all are one group then.
struct RunGroup {
  std::string value;
  std::vector<std::string> runs;
};
/// Groups in the order of their values, numbers before texts. Throws UsageError.
std::vector<RunGroup> groups_of(const track::RunIndex& index, const std::string& column,
                                const std::string& filter);

}  // namespace gallop::ui::api
