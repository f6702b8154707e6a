#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "gallop/tune/study.h"

namespace gallop::tune {

/// A study controlled by a test.
struct TestStudy {
  Study study;

  explicit TestStudy(StudySettings settings) : study(std::move(settings)) {}
  TestStudy(Space space, size_t objectives, size_t limits)
      : study(settings_of(std::move(space), objectives, limits)) {}

  static StudySettings settings_of(Space space, size_t objectives = 1, size_t limits = 0) {
    return {.name = "test",
            .seed = 7,
            .space = std::move(space),
            .objectives = std::vector<Objective>(objectives, {.metric = "loss"}),
            .limits = std::vector<Limit>(limits, {.metric = "memory"})};
  }

  const Trial& trial(int64_t number) const { return study.trials()[static_cast<size_t>(number)]; }

  /// The number of a new trial that waits.
  int64_t queue(Point point = {0.5}, int32_t bracket = 0, int64_t last_step = 0) {
    const auto number = static_cast<int64_t>(study.trials().size());
    study.apply({.kind = Event::Kind::kQueued,
                 .trial = number,
                 .bracket = bracket,
                 .last_step = last_step,
                 .point = std::move(point)});
    return number;
  }

  /// The number of a new trial that runs.
  int64_t start(Point point, int32_t bracket = 0) {
    const int64_t number = queue(std::move(point), bracket);
    run(number);
    return number;
  }

  /// Starts a trial that waits.
  void run(int64_t trial) {
    const int32_t attempt = this->trial(trial).attempt + 1;
    study.apply({.kind = Event::Kind::kStarted, .trial = trial, .attempt = attempt});
  }

  void report(int64_t trial, int64_t step, double loss) {
    study.apply({.kind = Event::Kind::kReported, .trial = trial, .step = step, .losses = {loss}});
  }

  void end(int64_t trial, TrialState state, std::vector<double> losses,
           std::vector<double> violations = {}) {
    study.apply({.kind = Event::Kind::kFinished,
                 .trial = trial,
                 .state = state,
                 .losses = std::move(losses),
                 .violations = std::move(violations)});
  }

  void complete(int64_t trial, double loss) { end(trial, TrialState::kComplete, {loss}); }

  void queue_again(int64_t trial, int64_t last_step = 0) {
    study.apply({.kind = Event::Kind::kRequeued, .trial = trial, .last_step = last_step});
  }
};

/// Settings of a study with one parameter between 0 and 1, and a loss.
inline StudySettings plain_settings() {
  return TestStudy::settings_of(Space({{"x", Interval{}}}, {}));
}

}  // namespace gallop::tune
