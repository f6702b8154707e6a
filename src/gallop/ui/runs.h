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

/// How long what is known of runs is taken to be so.
struct RunsPace {
  double between_looks = 0.9;  ///< Seconds; who asks each second sees something new each time.
  double between_updates = 4;  ///< Of the index, times as long as one takes.
};

/// The runs of a folder and of sweeps, as all that ask at once share them.
class Runs {
 public:
  /// Brings their index up to date. Throws UsageError where there is no such folder.
  explicit Runs(track::RunPlaces places, RunsPace pace = {});

  const track::RunPlaces& places() const { return places_; }
  /// Of a run that the index has.
  fs::path path_of(const std::string& name) const { return places_.path_of(name); }

  /// Calls `use` with the index, one caller after the other. It is brought up to date before,
  /// unless that was done within the last second, or has cost so much that it is left for some
  /// seconds. While that takes long, others get it as it was.
  template <typename Use>
  auto with_index(const Use& use) {
    std::unique_lock lock(mutex_);
    return use(current(lock));
  }

  /// Calls `use` with a run's history up to now; with that of one run one caller after the other.
  /// Throws DataError where its log cannot be read.
  template <typename Use>
  auto with_history(const std::string& run, const Use& use) {
    const std::shared_ptr<Shared> shared = shared_history(run);
    const std::lock_guard lock(shared->mutex);
    shared->history.update();
    note_points(run, shared->history.points());
    return use(static_cast<const RunHistory&>(shared->history));
  }

  /// What has changed since the last call, and once more what with_index() did not know yet
  /// although it had changed, as soon as it would.
  RunChanges take_changes();

  /// Has the next to ask see what has just been written.
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

  track::RunPlaces places_;
  RunsPace pace_;

  std::mutex mutex_;
  RunWatch watch_;
  RunChanges changes_;    ///< Not taken yet.
  RunChanges unknown_;    ///< To the index.
  bool is_stale_ = true;  ///< The index.
  /// A reader got it as it was, and is to be notified of what is unknown to it.
  bool is_behind_ = false;
  bool is_urgent_ = false;    ///< To bring it up to date.
  bool is_updating_ = false;  ///< By a thread that does not hold the lock meanwhile.
  std::condition_variable is_updated_;
  double looked_ = 0, updated_ = 0, update_seconds_ = 0;
  std::shared_ptr<track::RunReader> reader_ = std::make_shared<track::RunReader>();
  std::optional<track::RunIndex> index_;

  std::mutex kept_mutex_;
  std::map<std::string, Kept> kept_;
  uint64_t uses_ = 0;
};

}  // namespace gallop::ui
