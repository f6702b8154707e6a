#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gallop/train/evaluate.h"

namespace gallop::train {

/// Where a run stands after an update.
struct StepEvent {
  int64_t step = 0;   ///< Updates done.
  int64_t steps = 0;  ///< Updates of the whole run.
  double epoch = 0;   ///< Passes over the data done, 1.5 in the middle of the second.
  double lr = 0;
  std::vector<double> scheduled{};   ///< Values that vary, in the order of TrainerParts::scheduled.
  double loss = 0;                   ///< Mean over the batch.
  std::optional<double> accuracy{};  ///< Share of right first guesses, where counted.
  double gradient_norm = 0;
  double samples_per_second = 0;  ///< Over the last seconds.
  double wait_share = 0;          ///< Share of the time spent waiting for data, since the start.
  double seconds_left = 0;
  int64_t skipped_updates = 0;
  int64_t skipped_samples = 0;
  bool is_spike = false;  ///< The loss: its update was skipped.
  bool record = false;    ///< To be kept in the run's log.
};

struct EvaluationEvent {
  int64_t step = 0;
  double epoch = 0;
  Evaluation evaluation;
  bool best = false;
  double training_seconds = 0;  ///< Of the whole run up to here, as in Outcome.
};

/// How a run ended.
struct Outcome {
  bool finished = false;       ///< False where it was stopped and can be resumed.
  bool paused = false;         ///< It was stopped where TrainerParts::until said.
  std::string ended_early{};   ///< Why a finished run has not done all of its steps, in one line.
  int64_t restored_step = -1;  ///< Of the weights that it ends with, where those are not the last.
  int64_t step = 0;
  int64_t steps = 0;
  int64_t samples = 0;
  double seconds = 0;           ///< Of this process, evaluation and saving included.
  double training_seconds = 0;  ///< Of the whole run, evaluation and saving left out.
  double wait_share = 0;
  int64_t skipped_updates = 0;
  int64_t skipped_samples = 0;
  int64_t rewinds = 0;
  std::optional<EvaluationEvent> last, best;
};

/// Told what happens in a run, in the trainer's thread. stepped() comes after every update and must
/// cost next to nothing.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void stepped(const StepEvent&) {}
  virtual void evaluating() {}
  virtual void evaluated(const EvaluationEvent&) {}
  virtual void saved(int64_t /*step*/, const std::string& /*folder*/) {}
  /// The next step is the one after this, once more.
  virtual void went_back(int64_t /*step*/) {}
  /// Something to know that is no error, in one line.
  virtual void noted(const std::string& /*line*/) {}
  virtual void finished(const Outcome&) {}
};

}  // namespace gallop::train
