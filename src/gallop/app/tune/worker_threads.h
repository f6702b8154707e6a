#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gallop/app/tune/trial_command.h"
#include "gallop/app/tune/trial_metrics.h"
#include "gallop/base/stop.h"
#include "gallop/tune/study_client.h"
#include "gallop/tune/sweep.h"

namespace gallop::app {

/// Worker threads, each of which runs trials of a study one after the other.
class WorkerThreads {
 public:
  struct Worker {
    std::string name;  ///< Unique name.
    TrialPlace place;
  };
  /// Called in the worker's thread.
  using OpenStudyClient = std::function<std::unique_ptr<tune::StudyClient>()>;

  /// After `stop`, running trials are stopped and released. Throws UsageError if the study's trials
  /// are run by other programs.
  WorkerThreads(const Registries& registries, const tune::StudySettings& settings,
                const std::vector<Worker>& workers, const OpenStudyClient& open_study_client,
                const StopRequest& stop);
  ~WorkerThreads();
  WorkerThreads(const WorkerThreads&) = delete;
  WorkerThreads& operator=(const WorkerThreads&) = delete;

  /// Whether all workers have ended. Then rethrows the error that ended one; until all have
  /// released their trials, the leader must answer them, which may be this process.
  bool are_done();

 private:
  void run(const Worker& worker, const OpenStudyClient& open_study_client);

  tune::RunSpec spec_;
  TrialReports reports_;
  StopRequest stop_;
  std::mutex mutex_;
  std::exception_ptr error_;
  size_t done_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace gallop::app
