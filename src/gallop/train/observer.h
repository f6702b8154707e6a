#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gallop/tensor/named_tensor.h"
#include "gallop/train/outcome.h"

namespace gallop::train {

/// The arguments of a step.
struct StepArguments {
  int64_t step = 0;           ///< Updates done before it.
  const NamedTensors& batch;  ///< As passed to TrainStep::start().
  int64_t whole_rows = 0;     ///< Rows of the batch of all processes.
  double lr = 0;
  const std::vector<double>& scheduled;  ///< As in StepEvent.
};

/// The state of a run after an update.
struct StepEvent {
  int64_t step = 0;   ///< Updates done.
  int64_t steps = 0;  ///< Updates of the whole run.
  double epoch = 0;   ///< Epochs done, 1.5 in the middle of the second.
  double lr = 0;
  std::vector<double> scheduled{};   ///< Scheduled parameters, in the order of
                                     ///< TrainerParts::scheduled.
  double loss = 0;                   ///< Mean over the batch.
  std::optional<double> accuracy{};  ///< Fraction of correct top-1 predictions, if counted.
  double gradient_norm = 0;
  double samples_per_second = 0;  ///< Over the last seconds.
  double wait_share = 0;          ///< Fraction of the time spent waiting for data, since the start.
  double seconds_left = 0;
  int64_t skipped_updates = 0;
  int64_t skipped_samples = 0;
  bool is_spike = false;  ///< The loss is a spike: its update was skipped.
  bool record = false;    ///< To be written to the run's log.
};

/// Receives the events of a run in the trainer's thread. stepped() is called after every update and
/// must be fast.
class Observer {
 public:
  virtual ~Observer() = default;
  /// The trainer's thread begins what belongs to the step after `step` updates.
  virtual void step_begins(int64_t /*step*/) {}
  /// A step is about to be computed.
  virtual void step_starts(const StepArguments&) {}
  virtual void stepped(const StepEvent&) {}
  virtual void evaluating() {}
  virtual void evaluated(const EvaluationEvent&) {}
  virtual void saved(int64_t /*step*/, const std::string& /*folder*/) {}
  /// The run returned to an earlier checkpoint; the next step is the one after `step`.
  virtual void went_back(int64_t /*step*/) {}
  /// A message that is no error, in one line.
  virtual void noted(const std::string& /*line*/) {}
  virtual void finished(const Outcome&) {}
};

}  // namespace gallop::train
