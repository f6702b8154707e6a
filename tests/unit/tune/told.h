#pragma once

#include <utility>
#include <vector>

#include "gallop/tune/study.h"

namespace gallop::tune {

/// A study with events added one by one.
class Told {
 public:
  using Kind = Event::Kind;

  explicit Told(StudySettings settings) : study(std::move(settings)) {}

  const Trial& trial(int64_t number) const { return study.trials()[static_cast<size_t>(number)]; }

  int64_t queue(Point point = {0.5}, int32_t bracket = 0, int64_t last_step = 0) {
    const auto number = static_cast<int64_t>(study.trials().size());
    study.apply({.kind = Kind::kQueued,
                 .trial = number,
                 .bracket = bracket,
                 .last_step = last_step,
                 .point = std::move(point)});
    return number;
  }
  void start(int64_t number) {
    study.apply({.kind = Kind::kStarted, .trial = number, .attempt = trial(number).attempt + 1});
  }
  void report(int64_t number, int64_t step, double loss) {
    study.apply({.kind = Kind::kReported, .trial = number, .step = step, .losses = {loss}});
  }
  void finish(int64_t number, TrialState state, double loss = 0) {
    const bool is_complete = state == TrialState::kComplete;
    study.apply({.kind = Kind::kFinished,
                 .trial = number,
                 .state = state,
                 .losses = is_complete ? std::vector{loss} : std::vector<double>{}});
  }
  void requeue(int64_t number, int64_t last_step = 0) {
    study.apply({.kind = Kind::kRequeued, .trial = number, .last_step = last_step});
  }

  Study study;
};

/// One number between 0 and 1, and a loss.
inline StudySettings plain_settings() {
  return {.name = "test",
          .seed = 7,
          .space = Space({{"x", Interval{}}}, {}),
          .objectives = {{"loss", false}}};
}

}  // namespace gallop::tune
