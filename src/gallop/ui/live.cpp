#include "gallop/ui/live.h"

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/file_state.h"
#include "gallop/base/text.h"
#include "gallop/track/evaluation_report.h"
#include "gallop/track/run_folder.h"

namespace gallop::ui {

namespace {

// Rewritten files (labels, recipe, those of a report) are renamed into place, which changes their
// folder.
std::string state_of(const fs::path& run) {
  return file_states({run, run / "metrics.log", track::evaluation_report_of(run)});
}

}  // namespace

void RunChanges::add(const RunChanges& later) {
  for (const std::string& name : later.changed) {
    changed.insert(name);
    removed.erase(name);
  }
  for (const std::string& name : later.removed) {
    removed.insert(name);
    changed.erase(name);
  }
}

RunChanges RunWatch::look() {
  std::error_code error;
  const auto names = locations_.names(error);
  if (error) {
    throw UsageError(fmt::format("{}: cannot be read: {}", printable(locations_.runs.string()),
                                 error.message()));
  }
  RunChanges changes;
  std::map<std::string, Seen> now;
  for (const std::string& name : names) {
    const fs::path run = locations_.path_of(name);
    const auto before = seen_.find(name);
    Seen seen{.state = state_of(run)};
    const bool is_same = before != seen_.end() && before->second.state == seen.state;
    // A training begins with a record in the log.
    const bool may_be_trained = !is_same || before->second.is_trained;
    seen.is_trained = may_be_trained && track::RunFolder::is_trained(run);
    if (!is_same || before->second.is_trained != seen.is_trained) changes.changed.insert(name);
    now.emplace(name, std::move(seen));
  }
  for (const auto& [name, seen] : seen_) {
    if (!now.contains(name)) changes.removed.insert(name);
  }
  seen_ = std::move(now);
  return changes;
}

}  // namespace gallop::ui
