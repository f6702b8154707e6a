#pragma once

#include <vector>

#include "gallop/base/stop.h"

namespace gallop::app {

/// Lets SIGTERM, SIGINT, SIGUSR1 and SIGHUP (unless it is ignored, as under nohup) ask `stop`, from
/// construction to destruction. A second SIGINT, or any signal a second or more after another one,
/// ends the process at once with exit code 5, and what it has started with groups of their own;
/// what has been saved is whole, as saving is atomic. Signals of the process that started this one
/// and those of others count by themselves, as a launcher may pass on late what all were sent.
class SignalGuard {
 public:
  /// Whether a first signal is answered by a line that says what happens now.
  enum class Says { kStopping, kNothing };

  explicit SignalGuard(StopRequest& stop, Says says = Says::kStopping);
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;

 private:
  std::vector<int> handled_;
};

}  // namespace gallop::app
