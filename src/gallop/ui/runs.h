#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "gallop/base/file.h"
#include "gallop/track/run_index.h"
#include "gallop/ui/history.h"
#include "gallop/ui/live.h"

namespace gallop::ui {

/// How long cached state of runs is considered fresh.
struct RunsPace {
  double between_looks = 0.9;  ///< Seconds; below 1, so that polling once per second sees changes.
  double between_updates = 4;  ///< Of the index, in multiples of an update's duration.
};

/// The runs of a folder and of sweeps, shared by all requests.
class Runs {
 public:
  /// Reads the index. Throws UsageError if there is no such folder.
  explicit Runs(track::RunLocations locations, RunsPace pace = {});

  const track::RunLocations& locations() const { return locations_; }
  /// The folder of a run in the index.
  fs::path path_of(const std::string& name) const { return locations_.path_of(name); }

  /// Calls `use` with the index, one caller at a time. Updates the index first, unless that was
  /// done within the last second, or is so slow that it is postponed for some seconds. During a
  /// slow update, other callers get the old index.
  template <typename Use>
  auto with_index(const Use& use) {
    std::unique_lock lock(mutex_);
    return use(current(lock));
  }

  /// Calls `use` with the current history of a run, one caller at a time for each run. Throws
  /// DataError if its log cannot be read.
  template <typename Use>
  auto with_history(const std::string& run, const Use& use) {
    const std::shared_ptr<Shared> shared = shared_history(run);
    const std::lock_guard lock(shared->mutex);
    shared->history.update();
    note_points(run, shared->history.points());
    return use(static_cast<const RunHistory&>(shared->history));
  }

  /// The changes since the last call. A change that with_index() did not include yet is reported
  /// again as soon as it does.
  RunChanges take_changes();

  /// Makes the next call see what was just written.
  void look_again();

 private:
  struct Shared {
    explicit Shared(fs::path log) : history(std::move(log)) {}
    std::mutex mutex;
    RunHistory history;
  };
  struct Kept {
    std::shared_ptr<Shared> shared;
    int64_t points = 0;
    uint64_t used = 0;
  };

  const track::RunIndex& current(std::unique_lock<std::mutex>& lock);
  void look();
  bool may_update() const;
  void update(std::unique_lock<std::mutex>& lock);
  std::shared_ptr<Shared> shared_history(const std::string& run);
  void note_points(const std::string& run, int64_t points);

  track::RunLocations locations_;
  RunsPace pace_;

  std::mutex mutex_;
  RunWatch watch_;
  RunChanges changes_;    ///< Not taken yet.
  RunChanges unknown_;    ///< Not in the index yet.
  bool is_stale_ = true;  ///< Of the index.
  /// A reader got a stale index, and is to be notified of the missing changes.
  bool is_behind_ = false;
  bool is_urgent_ = false;    ///< Update without delay.
  bool is_updating_ = false;  ///< By a thread that has released the lock.
  std::condition_variable is_updated_;
  double looked_ = 0, updated_ = 0, update_seconds_ = 0;
  std::shared_ptr<track::RunReader> reader_ = std::make_shared<track::RunReader>();
  std::optional<track::RunIndex> index_;

  std::mutex kept_mutex_;
  std::map<std::string, Kept> kept_;
  uint64_t uses_ = 0;
};

}  // namespace gallop::ui
