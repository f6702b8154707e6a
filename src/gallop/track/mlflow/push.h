#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gallop/base/file.h"

namespace gallop::track::mlflow {

/// Where runs go.
struct Target {
  std::string address;  ///< See Client.
  std::string experiment = "gallop";
};

/// Throws UsageError where this is no address of a server.
void check_address(const std::string& address);

/// Sends a run to a server of MLflow. What is not sent yet waits in the run's own log, and how far
/// it got stands in RUN/mlflow.json, so that nothing is lost while the server is away or where this
/// process ends. Metrics have the names of foreign_name().
class Push {
 public:
  /// Throws UsageError where there is no such address.
  Push(const fs::path& run, const Target& target);
  ~Push();
  Push(const Push&) = delete;
  Push& operator=(const Push&) = delete;

  /// Sends what the server has not yet: options and tags, points, how the run stands. Returns how
  /// many points. Throws as Client does, after what was sent so far was noted down; the next call
  /// goes on. What was sent when no answer came is sent again, which MLflow drops.
  int64_t send();

 private:
  class State;

  std::string address_;
  std::unique_ptr<State> state_;
};

}  // namespace gallop::track::mlflow
