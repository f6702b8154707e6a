#include "gallop/ui/searches.h"

#include <algorithm>
#include <system_error>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/file_state.h"
#include "gallop/base/text.h"
#include "gallop/track/run_folder.h"

namespace gallop::ui {

namespace {

constexpr const char* kJournal = "journal.jsonl";
constexpr const char* kReport = "report.json";
// Files of a search that runs or was stopped; see app/optimize.cpp.
constexpr const char* kProgress = "progress.json";

// Changes when the search writes something, begins or ends.
std::string stamp_of(const fs::path& search) {
  return file_states({search / kJournal, search / kReport, search / kProgress}) +
         name_of(Searches::state_of(search));
}

}  // namespace

const char* name_of(Searches::State state) {
  switch (state) {
    case Searches::State::kRunning: return "running";
    case Searches::State::kStopped: return "stopped";
    case Searches::State::kFinished: return "finished";
  }
  return "";
}

std::vector<std::string> Searches::names() const {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    if (fs::is_regular_file(entry.path() / kJournal, error)) {
      names.push_back(entry.path().filename().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

fs::path Searches::find(const std::string& name) const {
  // Only names of existing searches become paths.
  const auto all = names();
  if (std::find(all.begin(), all.end(), name) != all.end()) return folder_ / name;
  const std::string nearest = nearest_name(name, all);
  throw UsageError(fmt::format("there is no search '{}'{}", printable(name),
                               nearest.empty() ? "" : "; did you mean '" + nearest + "'?"));
}

Searches::State Searches::state_of(const fs::path& search) {
  // A search locks its folder as a run does.
  if (track::RunFolder::is_trained(search)) return State::kRunning;
  return report_of(search).filename() == kReport ? State::kFinished : State::kStopped;
}

fs::path Searches::report_of(const fs::path& search) {
  std::error_code error;
  // A search that has ended removes the part, and one with a larger budget begins another one.
  const bool is_unfinished = fs::is_regular_file(search / kProgress, error);
  const bool is_finished = fs::is_regular_file(search / kReport, error);
  return search / (is_finished && !is_unfinished ? kReport : kProgress);
}

std::set<std::string> Searches::take_changes() {
  std::set<std::string> changed;
  std::map<std::string, std::string> now;
  for (const std::string& name : names()) {
    const std::string& stamp = now[name] = stamp_of(folder_ / name);
    const auto before = stamps_.find(name);
    if (before == stamps_.end() || before->second != stamp) changed.insert(name);
  }
  for (const auto& [name, stamp] : stamps_) {
    if (!now.contains(name)) changed.insert(name);
  }
  stamps_ = std::move(now);
  return changed;
}

}  // namespace gallop::ui
