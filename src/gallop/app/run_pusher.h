#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "gallop/track/mlflow/push.h"

namespace gallop::app {

/// Sends a run to an MLflow server while it trains, in a thread for which training never waits:
/// unsent data stay in the run's log.
class RunPusher {
 public:
  RunPusher(const fs::path& run, const track::mlflow::Target& target);
  /// Leaves the rest to be sent later.
  ~RunPusher();
  RunPusher(const RunPusher&) = delete;
  RunPusher& operator=(const RunPusher&) = delete;

  /// Sends the rest, if the server accepts it within seconds. Returns the error, or nothing.
  std::string finish();

 private:
  void push();
  void stop();

  track::mlflow::Push push_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool is_done_ = false;
  std::thread thread_;
};

}  // namespace gallop::app
