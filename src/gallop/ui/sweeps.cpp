#include "gallop/ui/sweeps.h"

#include <algorithm>
#include <chrono>
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
// For a database or a remote leader, as a browser waits.
constexpr double kPatienceSeconds = 2;
constexpr auto kForAnother = std::chrono::seconds(1);

// Changes when the study is written; empty for one in a database.
std::string stamp_of(const fs::path& folder) {
  return file_states({folder / "study.db", folder / "study.db-wal"});
}

}  // namespace

std::vector<std::string> Sweeps::names() const { return tune::study_names(studies_); }

std::shared_ptr<const tune::Study> Sweeps::study(const std::string& name) {
  // Only valid study names of clients become paths.
  if (!tune::is_study_name(name) || !tune::may_be_study(studies_ / name)) refuse(name);
  const fs::path folder = studies_ / name;
  const std::string stamp = stamp_of(folder);
  std::unique_lock lock(mutex_);
  Known& known = known_[name];
  // All callers wait for the same read, as a silent server is silent for all of them.
  if (!is_loaded(known)) is_read_.wait_for(lock, kForAnother, [&] { return !known.is_being_read; });
  const bool is_same = known.study && !stamp.empty() && known.stamp == stamp;
  if (is_loaded(known) && (is_same || known.is_being_read || !may_reload(known))) {
    if (known.trouble) std::rethrow_exception(known.trouble);
    known.is_behind = known.is_behind || !is_same;
    return known.study;
  }
  if (known.is_being_read) {
    known.is_behind = true;
    throw DeviceError(fmt::format("'{}' is still being read", name));
  }
  known.is_being_read = true;
  lock.unlock();
  Known found = read(folder);
  found.stamp = stamp;
  lock.lock();
  found.is_behind = known.is_behind && !is_loaded(known);
  known = found;
  is_read_.notify_all();
  if (found.trouble) std::rethrow_exception(found.trouble);
  return found.study;
}

Sweeps::Known Sweeps::read(const fs::path& folder) {
  Known found;
  const double begin = monotonic_seconds();
  try {
    found.study =
        std::make_shared<const tune::Study>(tune::StudyPlace::at(folder).read(kPatienceSeconds));
  } catch (...) {
    found.trouble = std::current_exception();
  }
  found.read = monotonic_seconds();
  found.seconds = found.read - begin;
  return found;
}

bool Sweeps::is_over(const Known& known) {
  if (!known.study) return !known.trouble;
  return known.study->running().empty() && known.study->has_all_trials();
}

bool Sweeps::is_loaded(const Known& known) { return known.study || known.trouble; }

bool Sweeps::may_reload(const Known& known) {
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
    const bool is_followed = stamp.empty() && known != known_.end() && !is_over(known->second);
    if (is_new || before->second != stamp || is_followed) changed.insert(name);
    if (known != known_.end() && known->second.is_behind && may_reload(known->second)) {
      known->second.is_behind = false;
      changed.insert(name);
    }
  }
  for (const auto& [name, stamp] : stamps_) {
    if (!now.contains(name)) changed.insert(name);
  }
  stamps_ = std::move(now);
  return changed;
}

}  // namespace gallop::ui
