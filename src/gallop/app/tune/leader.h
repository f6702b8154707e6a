#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "gallop/tune/remote/coordinator.h"
#include "gallop/tune/storage.h"
#include "gallop/tune/study_place.h"
#include "gallop/tune/tuner.h"

namespace gallop::app {

/// The lead of a study by this process: what its own workers and those elsewhere ask, and the time
/// after which no trial begins. A study in a database has no leader but itself; of it this looks
/// after the time alone.
class Leader {
 public:
  /// Reaches workers elsewhere at `listen`. No trial begins after `ends_at`, as monotonic_seconds()
  /// counts.
  Leader(std::unique_ptr<tune::Storage> storage, const tune::TuneRegistries& registries,
         const tune::StudyPlace& place, const std::string& listen, double ends_at);

  const tune::StudySettings& settings() const { return tuner_.settings(); }
  /// For a worker of this process.
  std::unique_ptr<tune::StudyClient> client();
  /// Starts trials again where the study was stopped, but not at its target.
  void resume();
  /// Waits a moment for workers elsewhere, and answers them. Throws DeviceError where the study's
  /// file is not in its place any more.
  void serve();
  /// Hands over the study as it stands.
  void show(const std::function<void(const tune::Study&)>& look);
  /// Whether there are trials under way, of anybody, that are told to this process.
  bool has_running();
  /// Lets workers elsewhere hear that the study is done.
  void take_leave();

 private:
  void check_file() const;

  tune::Tuner tuner_;
  fs::path file_;  // Of the study; empty where a database keeps it.
  uint64_t file_number_ = 0;
  std::optional<tune::Coordinator> coordinator_;
  std::mutex mutex_;  // Of the tuner.
  double ends_at_;
};

}  // namespace gallop::app
