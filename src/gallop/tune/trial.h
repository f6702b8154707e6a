#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/tune/space.h"

namespace gallop::tune {

/// Losses are minimized: a metric that is maximized has its sign changed.
struct Report {
  int64_t step = 0;
  double loss = 0;
};

enum class TrialState : uint8_t {
  kWaiting,  ///< To be started, for the first time or again.
  kRunning,
  kComplete,
  kPruned,  ///< Stopped early.
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
  int32_t attempt = 0;   ///< Number of starts.
  int32_t vanished = 0;  ///< Number of workers that vanished.
  Point point;
  int64_t parent = -1;    ///< The trial whose last checkpoint it begins with; -1 for none.
  int32_t member = -1;    ///< Member of a population, which trains in several trials; -1 for none.
  int64_t last_step = 0;  ///< Last step that it trains, counted as in reports; 0 for all.
  /// The number of finished trials when its point was chosen: a prefix of Study::finished().
  int64_t known_ends = 0;
  int64_t last_end = -1;         ///< Its last position in Study::finished(); -1 for none.
  std::vector<double> losses{};  ///< One for each objective; those of a complete trial.
  /// The violations of the limits, in their order; above 0 is a violation.
  std::vector<double> violations{};
  std::vector<Report> reports{};  ///< Of the first objective, steps rising.
  int32_t rewinds = 0;            ///< Number of times that reports were replaced by those of a
                                  ///< later attempt.
  double started = 0, ended = 0;  ///< Seconds since 1970.
  std::string worker{};           ///< The current or last worker.
  std::string message{};          ///< Why it failed.
  std::string folder{};           ///< Its run folder, with checkpoints from which it resumes.
  int64_t shared_with = -1;       ///< The trial that did its first steps; -1 for itself.
  int64_t shared_steps = 0;       ///< Number of these training steps, not reports.

  bool is_finished() const { return state >= TrialState::kComplete; }
};

}  // namespace gallop::tune
