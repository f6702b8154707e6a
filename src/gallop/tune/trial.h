#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/tune/space.h"

namespace gallop::tune {

/// Losses are what a search makes small: a metric that is to be large has its sign changed.
struct Report {
  int64_t step = 0;
  double loss = 0;
};

enum class TrialState : uint8_t {
  kWaiting,  ///< To be started, for the first time or again.
  kRunning,
  kComplete,
  kPruned,  ///< Ended early since it promised too little.
  kFailed,
};

/// "waiting", "running", "complete", "pruned", "failed".
const char* state_name(TrialState state);

/// One start of a trial.
struct Attempt {
  int64_t trial = -1;
  int32_t attempt = 0;
};

/// One evaluation of the objective.
struct Trial {
  int64_t number = 0;  ///< From 0.
  TrialState state = TrialState::kWaiting;
  /// Pruners do not compare trials of different brackets (Hyperband); samplers learn from all.
  int32_t bracket = 0;
  int32_t attempt = 0;   ///< How often it was started.
  int32_t vanished = 0;  ///< How often its worker has vanished.
  Point point;
  int64_t parent = -1;    ///< The trial whose last checkpoint it begins with; -1 for none.
  int32_t member = -1;    ///< Of a population, which trains in several trials; -1 for none.
  int64_t last_step = 0;  ///< Up to which it is to run, counted as in reports; 0 for all.
  /// How many ends of trials were known when its point was chosen: so much of Study::finished().
  int64_t known_ends = 0;
  int64_t last_end = -1;         ///< Where it stands last in Study::finished(); -1 for nowhere.
  std::vector<double> losses{};  ///< One for each objective; those of a complete trial.
  /// What the measured constraints came to, in their order; above 0 is too much.
  std::vector<double> violations{};
  std::vector<Report> reports{};  ///< Of the first objective, steps rising.
  int32_t rewinds = 0;            ///< How often reports gave way to those of a later attempt.
  double started = 0, ended = 0;  ///< Seconds since 1970.
  std::string worker{};           ///< Who has it or had it last.
  std::string message{};          ///< Why it failed.
  std::string folder{};           ///< Where its run lies, with checkpoints to go on from.
  int64_t shared_with = -1;       ///< The trial that has trained its first steps; -1 for itself.
  int64_t shared_steps = 0;       ///< How many: steps of training, not reports.

  bool is_finished() const { return state >= TrialState::kComplete; }
};

}  // namespace gallop::tune
