#pragma once

#include <functional>
#include <map>
#include <vector>

#include "gallop/base/clock.h"
#include "gallop/tune/event.h"

namespace gallop::tune {

/// When whoever runs a trial gave the last sign of life, for storages that one process has. While
/// that process stands still, as after Ctrl-Z, no process can give it one: that time does not
/// count. It stood still where nothing was asked of this object for more than one and a half
/// heartbeats.
class Heartbeats {
 public:
  using Clock = std::function<double()>;

  explicit Heartbeats(double heartbeat_seconds, Clock clock = monotonic_seconds)
      : longest_pause_(1.5 * heartbeat_seconds), clock_(std::move(clock)), asked_at_(clock_()) {}

  /// What starts or reports lives; what ends or waits is not looked after.
  void follow(const Event& event);
  void heartbeat(const Attempt& attempt);
  std::vector<Attempt> silent(double seconds);

 private:
  struct Sign {
    int32_t attempt = 0;
    double time = 0;
  };
  double now();

  double longest_pause_;
  Clock clock_;
  double asked_at_;
  std::map<int64_t, Sign> signs_;
};

}  // namespace gallop::tune
