#include "gallop/ui/sweeps.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "gallop/base/clock.h"
#include "gallop/base/error.h"
#include "gallop/base/file_state.h"
#include "gallop/base/text.h"
#include "gallop/tune/store.h"
#include "gallop/tune/study_place.h"

namespace gallop::ui {

namespace {

constexpr double kBetweenReads = 0.9;
constexpr double kTimesAsLong = 4;

// What changes where something is written to it; empty for one in a database.
std::string stamp_of(const fs::path& folder) {
  return file_states({folder / "study.db", folder / "study.db-wal"});
}

bool is_over(const tune::Study& study) {
  return study.running().empty() && study.finished_trials() >= study.wanted_trials();
}

}  // namespace

std::vector<std::string> Sweeps::names() const { return tune::study_names(studies_); }

std::shared_ptr<const tune::Study> Sweeps::study(const std::string& name) {
  // No other name of a client becomes a path.
  if (!tune::is_study_name(name) || !tune::is_study(studies_ / name)) refuse(name);
  const fs::path folder = studies_ / name;
  const std::string stamp = stamp_of(folder);
  {
    const std::lock_guard lock(mutex_);
    Known& known = known_[name];
    const bool is_same = !stamp.empty() && known.stamp == stamp;
    if (known.study && (is_same || !may_be_read_anew(known))) {
      known.is_behind = known.is_behind || !is_same;
      return known.study;
    }
  }
  const double begin = monotonic_seconds();
  auto study = std::make_shared<const tune::Study>(tune::StudyPlace::at(folder).read());
  const double end = monotonic_seconds();
  const std::lock_guard lock(mutex_);
  known_[name] = {.study = study, .stamp = stamp, .read = end, .seconds = end - begin};
  return study;
}

bool Sweeps::may_be_read_anew(const Known& known) {
  const double pause = std::max(kBetweenReads, kTimesAsLong * known.seconds);
  return monotonic_seconds() - known.read >= pause;
}

void Sweeps::refuse(const std::string& name) const {
  const std::string nearest = nearest_name(name, names());
  throw UsageError(fmt::format("there is no sweep '{}'{}", printable(name),
                               nearest.empty() ? "" : "; did you mean '" + nearest + "'?"));
}

std::set<std::string> Sweeps::take_changes() {
  std::set<std::string> changed;
  std::map<std::string, std::string> now;
  const std::lock_guard lock(mutex_);
  for (const std::string& name : names()) {
    const std::string& stamp = now[name] = stamp_of(studies_ / name);
    const auto before = stamps_.find(name);
    const bool is_new = before == stamps_.end();
    const auto known = known_.find(name);
    const bool is_followed = stamp.empty() && known != known_.end() && known->second.study;
    if (is_new || before->second != stamp || (is_followed && !is_over(*known->second.study))) {
      changed.insert(name);
    }
    if (known != known_.end() && known->second.is_behind && may_be_read_anew(known->second)) {
      known->second.is_behind = false;
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
