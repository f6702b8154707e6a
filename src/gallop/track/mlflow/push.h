#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "gallop/base/file.h"

namespace gallop::track::mlflow {

/// The destination of runs.
struct Target {
  std::string address;  ///< See Client.
  std::string experiment = "gallop";
};

/// Throws UsageError for an invalid server address.
void check_address(const std::string& address);

/// Sends a run to an MLflow server. Unsent points stay in the run's log, and the progress is stored
/// in RUN/mlflow.json, so that nothing is lost if the server is down or this process ends. Metrics
/// are named by foreign_name().
class Push {
 public:
  /// Throws UsageError for an invalid address.
  Push(const fs::path& run, const Target& target);
  ~Push();
  Push(const Push&) = delete;
  Push& operator=(const Push&) = delete;

  /// Sends everything new: options, tags, points and the run's state. Returns the number of points.
  /// Throws the errors of Client after saving the progress; the next call continues. Points whose
  /// response was lost are sent again; MLflow ignores duplicates.
  int64_t send();

 private:
  class State;

  std::string address_;
  std::unique_ptr<State> state_;
};

}  // namespace gallop::track::mlflow
