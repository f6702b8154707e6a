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

/// Leads a study in this process: serves its own and remote workers, and enforces the time limit. A
/// study in a database needs no coordinator, so that this only enforces the limit.
class Leader {
 public:
  /// Listens on `listen` for remote workers. No trial is started after `ends_at`
  /// (monotonic_seconds()).
  Leader(std::unique_ptr<tune::Storage> storage, const tune::TuneRegistries& registries,
         const tune::StudyPlace& place, const std::string& listen, double ends_at);

  const tune::StudySettings& settings() const { return tuner_.settings(); }
  /// A client for a worker of this process.
  std::unique_ptr<tune::StudyClient> client();
  /// Resumes the study if it was stopped, unless it reached its target.
  void resume();
  /// Serves remote workers for a moment. Throws DeviceError if the study's file was removed, moved
  /// or replaced.
  void serve();
  /// Calls `look` with the current state of the study.
  void show(const std::function<void(const tune::Study&)>& look);
  /// Whether any trial is running whose result is reported to this process.
  bool has_running();
  /// Keeps serving for a moment, so that remote workers learn that the study is done.
  void take_leave();

 private:
  void check_file() const;

  tune::Tuner tuner_;
  fs::path file_;  // The study's file; empty if it is in a database.
  uint64_t file_number_ = 0;
  std::optional<tune::Coordinator> coordinator_;
  std::mutex mutex_;  // Guards the tuner.
  double ends_at_;
};

}  // namespace gallop::app
