#pragma once

#include <string>
#include <vector>

#include "gallop/base/stop.h"

namespace gallop::app {

/// Handles SIGTERM, SIGINT, SIGUSR1, SIGHUP (unless it is ignored, as under nohup) and SIGPIPE of a
/// standard stream whose reader has ended (unless it is ignored), from construction to destruction.
///
/// During start-up, until started(), there is nothing to save: the process ends at once with exit
/// code 5, and what it has started with groups of their own; without a word after SIGPIPE.
/// Afterwards the first signal requests `stop`. A second SIGINT, or any signal a second or more
/// after another one, then ends the process at once, too; what has been saved is whole, as saving
/// is atomic. Signals of the process that started this one and those of others count by themselves,
/// as a launcher may pass on late what all were sent.
class SignalGuard {
 public:
  /// Whether a first signal is answered by a line that says what happens now.
  enum class Says { kStopping, kNothing };

  explicit SignalGuard(StopRequest& stop, Says says = Says::kStopping);
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

  /// Ends start-up: from here on there is progress to save.
  void started();
  const StopRequest& stop() const { return stop_; }

 private:
  StopRequest& stop_;
  std::vector<int> handled_;
};

/// What a signal that ends the process during start-up does besides, while this lives: it appends a
/// line to a log and says how to go on.
class StartUpEnd {
 public:
  /// `file` outlives it; `record` is written there, `message` to standard error. -1: to no file.
  StartUpEnd(int file, std::string record, std::string message);
  ~StartUpEnd();
  StartUpEnd(const StartUpEnd&) = delete;
  StartUpEnd& operator=(const StartUpEnd&) = delete;

  /// Writes the record and, where it `says` so, the message. Async-signal-safe.
  void write(bool says) const;

 private:
  int file_;
  std::string record_, message_;
};

}  // namespace gallop::app
