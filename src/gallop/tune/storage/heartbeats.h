#pragma once

#include <functional>
#include <map>
#include <vector>

#include "gallop/base/clock.h"
#include "gallop/tune/event.h"

namespace gallop::tune {

/// The last heartbeat of each running trial, for storages with a single process. While that process
/// is suspended, such as after Ctrl-Z, it cannot receive heartbeats: gaps of more than one and a
/// half heartbeat intervals between calls to this object do not count.
class Heartbeats {
 public:
  using Clock = std::function<double()>;

  explicit Heartbeats(double heartbeat_seconds, Clock clock = monotonic_seconds)
      : longest_pause_(1.5 * heartbeat_seconds), clock_(std::move(clock)), asked_at_(clock_()) {}

  /// Starts and reports count as heartbeats; trials that end or wait are no longer tracked.
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
