#pragma once

#include "gallop/base/stop.h"

namespace gallop::app {

/// Lets SIGTERM, SIGINT and SIGUSR1 ask `stop`, from construction to destruction. A second signal
/// ends the process at once with exit code 5; what has been saved is whole, as saving is atomic.
class SignalGuard {
 public:
  explicit SignalGuard(StopRequest& stop);
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;
};

}  // namespace gallop::app
