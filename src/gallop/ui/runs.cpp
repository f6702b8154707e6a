#include "gallop/ui/runs.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "gallop/base/clock.h"

namespace gallop::ui {

namespace {

// How long to wait for an index update by another thread before using the old index.
constexpr auto kPatience = std::chrono::milliseconds(300);
// Maximum number of cached points, 24 bytes each; the least recently used histories are dropped.
constexpr int64_t kMostPoints = 20'000'000;

}  // namespace

Runs::Runs(track::RunLocations locations, RunsPace pace)
    : locations_(std::move(locations)), pace_(pace), watch_(locations_) {
  index_.emplace(locations_, reader_);
  watch_.look();
}

const track::RunIndex& Runs::current(std::unique_lock<std::mutex>& lock) {
  look();
  is_updated_.wait_for(lock, kPatience, [this] { return !is_updating_; });
  if (may_update()) update(lock);
  is_behind_ = is_behind_ || is_stale_ || is_updating_;
  return *index_;
}

void Runs::look() {
  const double now = monotonic_seconds();
  if (now - looked_ <= pace_.between_looks) return;
  const RunChanges changes = watch_.look();
  looked_ = now;
  if (changes.is_empty()) return;
  is_stale_ = true;
  changes_.add(changes);
  unknown_.add(changes);
  const std::lock_guard lock(kept_mutex_);
  for (const std::string& name : changes.removed) kept_.erase(name);
}

bool Runs::may_update() const {
  const double pause = is_urgent_ ? 0 : pace_.between_updates * update_seconds_;
  return is_stale_ && !is_updating_ && monotonic_seconds() - updated_ >= pause;
}

// A run's log may have millions of lines, which take seconds to read.
void Runs::update(std::unique_lock<std::mutex>& lock) {
  const double begin = monotonic_seconds();
  RunChanges known = std::exchange(unknown_, {});
  is_updating_ = true;
  is_urgent_ = false;
  is_stale_ = false;  // Until a change is detected from here on.
  std::optional<track::RunIndex> index;
  std::exception_ptr error;
  lock.unlock();
  try {
    index.emplace(locations_, reader_);
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  is_updating_ = false;
  is_updated_.notify_all();
  updated_ = monotonic_seconds();
  update_seconds_ = updated_ - begin;
  if (error) {
    is_stale_ = true;
    known.add(std::exchange(unknown_, {}));
    unknown_ = std::move(known);
    std::rethrow_exception(error);
  }
  index_ = std::move(index);
  if (is_behind_) changes_.add(known);
  is_behind_ = is_behind_ && is_stale_;
}

RunChanges Runs::take_changes() {
  const std::lock_guard lock(mutex_);
  look();
  if (is_behind_ && may_update()) {
    changes_.add(unknown_);
    is_behind_ = false;
  }
  return std::exchange(changes_, {});
}

void Runs::look_again() {
  const std::lock_guard lock(mutex_);
  looked_ = 0;
  is_urgent_ = true;
}

std::shared_ptr<Runs::Shared> Runs::shared_history(const std::string& run) {
  const std::lock_guard lock(kept_mutex_);
  Kept& kept = kept_[run];
  if (!kept.shared) kept.shared = std::make_shared<Shared>(path_of(run) / "metrics.log");
  kept.used = ++uses_;
  return kept.shared;
}

void Runs::note_points(const std::string& run, int64_t points) {
  const std::lock_guard lock(kept_mutex_);
  if (const auto kept = kept_.find(run); kept != kept_.end()) kept->second.points = points;
  int64_t sum = 0;
  for (const auto& [name, kept] : kept_) sum += kept.points;
  while (sum > kMostPoints && kept_.size() > 1) {
    const auto oldest = std::min_element(
        kept_.begin(), kept_.end(),
        [](const auto& a, const auto& b) { return a.second.used < b.second.used; });
    sum -= oldest->second.points;
    kept_.erase(oldest);
  }
}

}  // namespace gallop::ui
