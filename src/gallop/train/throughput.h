#pragma once

#include <cstdint>

#include "gallop/base/clock.h"

namespace gallop::train {

/// Seconds between go() and pause(), added up.
class Stopwatch {
 public:
  void go() {
    if (!running_) since_ = monotonic_seconds();
    running_ = true;
  }
  void pause() {
    if (running_) total_ += monotonic_seconds() - since_;
    running_ = false;
  }
  double seconds() const { return total_ + (running_ ? monotonic_seconds() - since_ : 0); }

 private:
  double total_ = 0;
  double since_ = 0;
  bool running_ = false;
};

/// Recent throughput on a stopwatch's time, over windows of two seconds, so that pauses for
/// evaluations and old steps do not count.
class Throughput {
 public:
  void add(int64_t samples, double now) {
    samples_ += samples;
    ++steps_;
    const double elapsed = now - since_;
    if (elapsed <= 0) return;
    if (elapsed >= kWindow || !complete_) {
      samples_per_second_ = static_cast<double>(samples_) / elapsed;
      seconds_per_step_ = elapsed / static_cast<double>(steps_);
    }
    if (elapsed >= kWindow) {
      complete_ = true;
      since_ = now;
      samples_ = steps_ = 0;
    }
  }
  double samples_per_second() const { return samples_per_second_; }
  double seconds_per_step() const { return seconds_per_step_; }

 private:
  static constexpr double kWindow = 2;
  double since_ = 0;
  int64_t samples_ = 0;
  int64_t steps_ = 0;
  bool complete_ = false;
  double samples_per_second_ = 0;
  double seconds_per_step_ = 0;
};

}  // namespace gallop::train
