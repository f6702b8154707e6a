#pragma once

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/base/stop.h"

namespace gallop::app {

/// Handles SIGTERM, SIGINT, SIGUSR1, SIGHUP (unless it is ignored, as under nohup), SIGPIPE of a
/// standard stream whose reader has ended (unless it is ignored) and SIGXCPU (the soft limit of CPU
/// time), from construction to destruction. A guard of a command delivers signals that the front
/// program held back (StopSignals::kHeld).
///
/// During start-up, until started(), there is nothing to save: the process ends at once with exit
/// code 5, together with the process groups that it has started. Afterwards the first signal
/// requests `stop`. A second SIGINT, or any signal a second or more after another one, then ends
/// the process at once, too; saved files are complete, as saving is atomic. Signals of the parent
/// process and those of others are counted separately, as a launcher may forward a signal late that
/// all processes have received.
class SignalGuard {
 public:
  /// Whether the first signal prints a line that says what happens now.
  enum class Says { kStopping, kNothing };
  /// What the destructor leaves: of a command, SIGPIPE ignored, as output must not end the process
  /// before its exit code is known; of a call in a user's program, all as it was.
  enum class Scope { kCommand, kCall };

  explicit SignalGuard(StopRequest& stop, Says says = Says::kStopping,
                       Scope scope = Scope::kCommand);
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

  /// Ends start-up: from here on there is progress to save.
  void started();
  const StopRequest& stop() const { return stop_; }

 private:
  StopRequest& stop_;
  Scope scope_;
  std::vector<std::pair<int, struct sigaction>> replaced_;  // Signals and their former actions.
};

/// While this lives, a signal that ends the process during start-up also writes a record to a log
/// and prints how to continue. The last one that was constructed counts.
class StartUpEnd {
 public:
  /// `file` must outlive it; `record` is appended there, `message` written to standard error.
  StartUpEnd(int file, std::string record, std::string message);
  /// Creates the file `log` with `record`, unless it exists.
  StartUpEnd(const fs::path& log, std::string record, std::string message);
  ~StartUpEnd();
  StartUpEnd(const StartUpEnd&) = delete;
  StartUpEnd& operator=(const StartUpEnd&) = delete;

  /// Writes the record and, if `says`, the message. Async-signal-safe.
  void write(bool says) const;

 private:
  int file_ = -1;
  std::string log_;  // To be created if there is no file.
  std::string record_, message_;
};

}  // namespace gallop::app
