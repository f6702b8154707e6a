#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gallop/base/stop.h"
#include "gallop/data/loader.h"
#include "gallop/model/model.h"
#include "gallop/optim/optimizer.h"
#include "gallop/schedule/schedule.h"
#include "gallop/train/checkpoint.h"
#include "gallop/train/evaluate.h"
#include "gallop/train/length.h"
#include "gallop/train/observer.h"
#include "gallop/train/step/step.h"
#include "gallop/train/train_config.h"

namespace gallop::train {

/// A parameter that changes during a run.
struct ParameterSchedule {
  ScheduledParameter value;
  std::function<double(double progress)> at;
  schedule::Schedule* schedule = nullptr;  ///< Its schedule, if it has one; saved in checkpoints.
};

/// The objects of a run. They must outlive the trainer.
struct TrainerParts {
  model::Model& model;
  optim::Optimizer& optimizer;
  schedule::Schedule& schedule;  ///< Schedule of the learning rate.
  double lr_factor = 1;          ///< Multiplies all learning rates.
  std::vector<ParameterSchedule> scheduled{};
  const data::Samples& train_samples;
  const data::Samples* evaluation_samples = nullptr;  ///< If null, nothing is evaluated.
  CheckpointStore& checkpoints;
  std::vector<Observer*> observers{};  ///< See also Trainer::observe().
  const StopRequest& stop;
  /// Where to pause, in steps or epochs of the whole run; kNever: train to the end.
  Interval until{};
  /// Steps whose checkpoints are kept for runs that share a prefix, in increasing order.
  std::vector<int64_t> keep_at{};
  /// Whether the data may have another size than when the resumed checkpoint was saved. If its
  /// position is beyond their end, the next epoch begins.
  bool allow_changed_data = false;
  /// Identifies the teacher of StepConfig::distill in checkpoints; empty without a teacher.
  std::string teacher{};
};

/// Throws UsageError if a schedule depends on evaluations and there are none. `evaluates`: whether
/// there are samples to evaluate on.
void check_schedule(const schedule::Schedule& schedule, const TrainConfig& config, bool evaluates);

/// Throws UsageError if a schedule follows a metric that evaluations do not report. Without
/// `metrics` they report loss, accuracy and top5.
void check_followed(const schedule::Schedule& schedule, const MetricSet* metrics);

/// Throws UsageError if the end of each cycle is to be kept and the schedule has no cycles.
void check_snapshots(const schedule::Schedule& schedule, const TrainConfig& config);

/// Runs the loop: data, step, schedule, evaluation, checkpoints.
class Trainer {
 public:
  Trainer(const TrainerParts& parts, const TrainConfig& config, const StepConfig& step_config,
          const data::LoaderConfig& loader_config, const EvaluateConfig& evaluate_config);
  ~Trainer();

  /// Continues from a checkpoint: restores weights, optimizer, loss scale, counters and the
  /// position in the data in samples, so that the batch size may differ. Throws DataError if it is
  /// damaged, UsageError if it does not fit or has more steps than the run. Writes nothing. If
  /// processes share steps, all must call this, and the checkpoint is that of rank 0.
  void resume(const std::optional<CheckpointInfo>& checkpoint);

  /// Whether run() has nothing left to do: all steps and the last evaluation are done, or the run
  /// has ended early.
  bool has_ended() const;

  /// Sets the observers of run(), replacing those of TrainerParts.
  void observe(std::vector<Observer*> observers);

  /// See TrainStep::compiled_graphs().
  std::map<int64_t, compile::GraphListing> compiled_graphs() const;
  /// Why the steps so far ran eagerly; nothing if any was compiled.
  std::optional<std::string> why_eager() const;

  /// Trains to the end, or to the next step boundary after a stop request, and saves there. Throws
  /// DataError for a loss or gradient that is not finite, unless such updates are skipped.
  Outcome run();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gallop::train
