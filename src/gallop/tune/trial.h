#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gallop/tune/space.h"

namespace gallop::tune {

/// Losses are minimized: a metric that is maximized has its sign changed.
struct Report {
  int64_t step = 0;
  double reported = 0;
  /// For comparisons: NaN in place of infinities, as an infinitely good loss would distort them.
  double loss = std::isfinite(reported) ? reported : std::numeric_limits<double>::quiet_NaN();
};

enum class TrialState : uint8_t {
  kWaiting,  ///< Queued for its first start or a restart.
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
  /// Pruners compare only trials of the same bracket (Hyperband); samplers use all.
  int32_t bracket = 0;
  int32_t attempt = 0;   ///< Number of starts.
  int32_t vanished = 0;  ///< Number of workers that vanished.
  Point point;
  int64_t parent = -1;    ///< The trial whose last checkpoint it starts from; -1 for none.
  int32_t member = -1;    ///< Member of a population, which trains in several trials; -1 for none.
  int64_t last_step = 0;  ///< Last training step, counted as in reports; 0: no limit.
  /// The number of finished trials when its point was chosen: a prefix of Study::finished().
  int64_t known_ends = 0;
  int64_t last_end = -1;         ///< Position of its last end in Study::finished(); -1 for none.
  std::vector<double> losses{};  ///< One per objective; only for complete trials.
  /// One per limit, in order; above 0 is a violation.
  std::vector<double> violations{};
  std::vector<Report> reports{};  ///< Of the first objective, in ascending order of steps.
  int32_t rewinds = 0;            ///< Number of times that reports were replaced by those of a
                                  ///< later attempt.
  double started = 0, ended = 0;  ///< Seconds since 1970.
  std::string worker{};           ///< The current or last worker.
  std::string message{};          ///< The error of a failed trial.
  std::string folder{};           ///< Run folder with the checkpoints from which it resumes.
  int64_t shared_with = -1;       ///< The trial that trained its first steps; -1 for none.
  int64_t shared_steps = 0;       ///< Number of shared training steps (not reports).

  bool is_finished() const { return state >= TrialState::kComplete; }
};

}  // namespace gallop::tune
