#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "gallop/app/system_recorder.h"
#include "gallop/base/file.h"
#include "gallop/track/log.h"
#include "gallop/train/observer.h"

namespace gallop::app {

/// An observer that writes the events of a run, and system metrics, to its log.
class RunLog final : public train::Observer {
 public:
  /// Begins a session of the log after `step`. `part` is the evaluated split, `scheduled` the names
  /// of StepEvent::scheduled, `processes` those that train on this machine.
  RunLog(const fs::path& log, int64_t step, std::string part, std::vector<std::string> scheduled,
         int processes);

  void stepped(const train::StepEvent& event) override;
  void evaluated(const train::EvaluationEvent& event) override;
  void went_back(int64_t step) override;
  void saved(int64_t step, const std::string& folder) override;
  void noted(const std::string& line) override;
  void finished(const train::Outcome& outcome) override;

  /// Records that the run has ended with an error. Does not throw, as it is called while that error
  /// is handled.
  void failed(const std::string& error);

  /// The open file, and the record which says that the run was stopped before its next step: for a
  /// signal handler, which cannot use this class.
  int file() const { return writer_.file(); }
  std::string stopped_record() const;

 private:
  void append(track::Record record);
  void sampled(const track::SystemReading& reading);

  fs::path path_;
  std::mutex mutex_;  // Guards the writer.
  track::LogWriter writer_;
  std::atomic<int64_t> step_;  // The last known step.
  std::string part_;
  std::vector<std::string> scheduled_;
  std::optional<SystemRecorder> system_;
};

}  // namespace gallop::app
