#pragma once

#include <utility>

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

  /// The number of a new trial that runs.
  int64_t start(Point point, int32_t bracket = 0) {
    const auto number = static_cast<int64_t>(study.trials().size());
    study.apply({.kind = Event::Kind::kQueued,
                 .trial = number,
                 .bracket = bracket,
                 .point = std::move(point)});
    run(number);
    return number;
  }

  /// Starts a trial that waits.
  void run(int64_t trial) {
    const int32_t attempt = study.trials()[static_cast<size_t>(trial)].attempt + 1;
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

  void queue_again(int64_t trial) { study.apply({.kind = Event::Kind::kRequeued, .trial = trial}); }
};

}  // namespace gallop::tune
