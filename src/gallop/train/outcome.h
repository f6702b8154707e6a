#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gallop/train/evaluation.h"

namespace gallop::train {

/// The result of an evaluation during training.
struct EvaluationEvent {
  int64_t step = 0;
  double epoch = 0;
  Evaluation evaluation;
  bool best = false;
  double training_seconds = 0;  ///< For the whole run so far, as in Outcome.
};

/// How a run ended.
struct Outcome {
  bool finished = false;       ///< False if it was stopped and can be resumed.
  bool paused = false;         ///< It was stopped at TrainerParts::until.
  std::string ended_early{};   ///< Why a finished run did not do all of its steps, in one line.
  int64_t restored_step = -1;  ///< Step of the final weights, if they are not the last ones.
  int64_t step = 0;
  int64_t steps = 0;
  int64_t samples = 0;
  double seconds = 0;           ///< Of this process, including evaluation and saving.
  double training_seconds = 0;  ///< Of the whole run, without evaluation and saving.
  double wait_share = 0;
  int64_t skipped_updates = 0;
  int64_t skipped_samples = 0;
  int64_t rewinds = 0;
  std::optional<EvaluationEvent> last, best;
};

}  // namespace gallop::train
