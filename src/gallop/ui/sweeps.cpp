#include "gallop/ui/sweeps.h"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/clock.h"
#include "gallop/base/error.h"
#include "gallop/base/file_state.h"
#include "gallop/base/text.h"
#include "gallop/tune/study_place.h"

namespace gallop::ui {

namespace {

constexpr double kBetweenReads = 0.9;
constexpr double kTimesAsLong = 4;

// What changes where something is written to it; empty for one in a database.
std::string stamp_of(const fs::path& folder) {
  std::string stamp;
  for (const char* name : {"study.db", "study.db-wal"}) {
    struct stat info = {};
    if (stat((folder / name).c_str(), &info) == 0) stamp += file_state(info) + " ";
  }
  return stamp;
}

bool is_over(const tune::Study& study) {
  const auto& trials = study.trials();
  return study.running().empty() &&
         std::count_if(trials.begin(), trials.end(), [](const tune::Trial& trial) {
           return trial.is_finished();
         }) >= study.wanted_trials();
}

}  // namespace

std::vector<std::string> Sweeps::names() const { return tune::study_names(studies_); }

std::shared_ptr<const tune::Study> Sweeps::study(const std::string& name) {
  const auto all = names();
  // No name of a client becomes a path unless a folder has it.
  if (!std::binary_search(all.begin(), all.end(), name)) {
    const std::string nearest = nearest_name(name, all);
    throw UsageError(fmt::format("there is no sweep '{}'{}", printable(name),
                                 nearest.empty() ? "" : "; did you mean '" + nearest + "'?"));
  }
  const fs::path folder = studies_ / name;
  const std::string stamp = stamp_of(folder);
  {
    const std::lock_guard lock(mutex_);
    const Known& known = known_[name];
    const double pause = std::max(kBetweenReads, kTimesAsLong * known.seconds);
    const bool is_same = !stamp.empty() && known.stamp == stamp;
    if (known.study && (is_same || monotonic_seconds() - known.read < pause)) return known.study;
  }
  const double begin = monotonic_seconds();
  auto study = std::make_shared<const tune::Study>(tune::StudyPlace::at(folder).read());
  const double end = monotonic_seconds();
  const std::lock_guard lock(mutex_);
  known_[name] = {.study = study, .stamp = stamp, .read = end, .seconds = end - begin};
  return study;
}

std::set<std::string> Sweeps::take_changes() {
  std::set<std::string> changed;
  std::map<std::string, std::string> now;
  const std::lock_guard lock(mutex_);
  for (const std::string& name : names()) {
    const std::string& stamp = now[name] = stamp_of(studies_ / name);
    const auto before = stamps_.find(name);
    const bool is_new = before == stamps_.end();
    const Known* const known = known_.contains(name) ? &known_[name] : nullptr;
    const bool is_followed = stamp.empty() && known != nullptr && known->study;
    if (is_new || before->second != stamp || (is_followed && !is_over(*known->study))) {
      changed.insert(name);
    }
  }
  for (const auto& [name, stamp] : stamps_) {
    if (!now.contains(name)) changed.insert(name);
  }
  stamps_ = std::move(now);
  if (!std::exchange(has_looked_, true)) changed.clear();
  return changed;
}

}  // namespace gallop::ui
