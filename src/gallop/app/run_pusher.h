#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

#include "gallop/track/mlflow/push.h"

namespace gallop::app {

/// Sends a run to a server of MLflow while it trains, in a thread of its own, which training never
/// waits for: what the server cannot take waits in the run's log.
class RunPusher {
 public:
  RunPusher(const fs::path& run, const track::mlflow::Target& target);
  /// Leaves the rest to be sent later.
  ~RunPusher();
  RunPusher(const RunPusher&) = delete;
  RunPusher& operator=(const RunPusher&) = delete;

  /// Sends the rest, where the server takes it within seconds. Returns why it could not, or
  /// nothing.
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
