#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gallop/app/data_sharing.h"
#include "gallop/base/child_process.h"
#include "gallop/base/file.h"
#include "gallop/base/stop.h"
#include "gallop/optimize/experiments.h"
#include "gallop/parallel/store.h"

namespace gallop::app {

/// What a training did while it was the one that ran.
struct PacedTurn {
  double steps = 0, seconds = 0, joules = 0;

  double steps_per_second() const { return steps / seconds; }
  double steps_per_joule() const { return joules > 0 ? steps / joules : 0; }
};

/// The arguments of this program that train, and in how many processes.
struct PacedCommand {
  std::vector<std::string> arguments;
  int processes = 1;
};

/// A training in child processes (measured_training.h) that are suspended except for its turns, so
/// that two of them can be compared under the same conditions of the machine. Several processes
/// form a group as those of 'gallop launch'.
class PacedTraining {
 public:
  /// Starts it, and suspends it after its warm-up, or leaves it ended if it fails. `output` is a
  /// file for its output. Throws optimize::Stopped after a stop request, and DeviceError if it
  /// cannot be started.
  PacedTraining(const PacedCommand& command, const fs::path& output, const StopRequest& stop);
  ~PacedTraining();

  /// Why it has ended, in one line; empty while it lives.
  const std::string& failure() const { return failure_; }
  const optimize::Settings& settings() const { return settings_; }

  /// Lets it train for about this long, and at least some steps.
  PacedTurn turn(double seconds);

  /// Seconds between two of its lines so far.
  double seconds_of_line() const;
  /// Losses of the first steps.
  const std::vector<double>& losses() const { return losses_; }
  int64_t peak_bytes() const { return peak_bytes_; }
  const std::string& energy_method() const { return energy_method_; }

 private:
  struct Interval {
    double begin = 0, end = 0, steps = 0, joules = 0;
  };
  class Rank;

  void start(const PacedCommand& command, const fs::path& output);
  // False once one of the processes has ended; the others end with this object.
  bool read(int milliseconds);
  // Whether it is a line of measured_training.h.
  bool take(std::string_view line);
  void send(int signal);

  const StopRequest& stop_;
  // The store of several processes.
  std::optional<parallel::StoreServer> store_;
  std::optional<DataSharing> sharing_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  optimize::Settings settings_;
  std::vector<Interval> intervals_;
  std::vector<double> losses_;
  int64_t peak_bytes_ = 0;
  std::string energy_method_, failure_;
};

}  // namespace gallop::app
