#pragma once

#include <functional>
#include <map>
#include <vector>

#include "gallop/base/clock.h"
#include "gallop/tune/event.h"

namespace gallop::tune {

/// When whoever runs a trial gave the last sign of life, for storages that one process has.
class Heartbeats {
 public:
  using Clock = std::function<double()>;

  explicit Heartbeats(Clock clock = monotonic_seconds) : clock_(std::move(clock)) {}

  /// What starts or reports lives; what ends or waits is not looked after.
  void follow(const Event& event);
  void beat(const Attempt& attempt);
  std::vector<Attempt> silent(double seconds) const;

 private:
  struct Sign {
    int32_t attempt = 0;
    double time = 0;
  };
  Clock clock_;
  std::map<int64_t, Sign> signs_;
};

}  // namespace gallop::tune
