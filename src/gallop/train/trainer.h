#pragma once

#include <cstdint>
#include <functional>
#include <memory>
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
#include "gallop/train/step.h"
#include "gallop/train/train_config.h"

namespace gallop::train {

/// A value that changes along a run.
struct ParameterSchedule {
  ScheduledParameter value;
  std::function<double(double progress)> at;
  schedule::Schedule* schedule = nullptr;  ///< Its own, if it has one: part of checkpoints.
};

/// What a run is made of. Everything outlives the trainer.
struct TrainerParts {
  model::Model& model;
  optim::Optimizer& optimizer;
  schedule::Schedule& schedule;  ///< Of the learning rate.
  double lr_factor = 1;          ///< Of all learning rates.
  std::vector<ParameterSchedule> scheduled{};
  const data::Samples& train_samples;
  const data::Samples* evaluation_samples = nullptr;  ///< May be null: then nothing is evaluated.
  CheckpointStore& checkpoints;
  std::vector<Observer*> observers{};  ///< See also Trainer::observe().
  const StopRequest& stop;
  /// Where to stop before the end, in steps or epochs of the whole run; kNever: nowhere.
  Interval until{};
  /// Steps whose checkpoints are kept for runs that begin alike, rising.
  std::vector<int64_t> keep_at{};
  /// The data may have another size than those of the checkpoint that is resumed; where that stands
  /// behind their end, the next epoch begins.
  bool allow_changed_data = false;
  /// What tells the teacher of StepConfig::distill from others, for checkpoints; empty without.
  std::string teacher{};
};

/// Throws UsageError where a schedule follows evaluations and there are none. `evaluates`: there
/// are samples to evaluate on.
void check_schedule(const schedule::Schedule& schedule, const TrainConfig& config, bool evaluates);

/// Throws UsageError where a schedule follows a metric that is not among those of evaluations,
/// which without `metrics` have loss, accuracy and top5.
void check_followed(const schedule::Schedule& schedule, const MetricSet* metrics);

/// Throws UsageError where the end of each cycle is to be kept and the schedule has no cycles.
void check_snapshots(const schedule::Schedule& schedule, const TrainConfig& config);

/// Runs the loop: data, step, schedule, evaluation, checkpoints.
class Trainer {
 public:
  Trainer(const TrainerParts& parts, const TrainConfig& config, const StepConfig& step_config,
          const data::LoaderConfig& loader_config, const EvaluateConfig& evaluate_config);
  ~Trainer();

  /// Continues from a checkpoint: weights, optimizer, loss scale, counters and the position in the
  /// data, in samples: the batch size may be another one. Throws DataError where it is damaged,
  /// UsageError where it does not fit or has more steps than the run. Nothing is written.
  /// Of processes that share steps, the first has the checkpoint, and all call this.
  void resume(const std::optional<CheckpointInfo>& checkpoint);

  /// Whether run() would find nothing left to do: all steps and the last evaluation are done, or
  /// the run has ended early.
  bool has_ended() const;

  /// Sets the observers of run(), in place of those of the parts.
  void observe(std::vector<Observer*> observers);

  /// Trains to the end, or to the next step boundary after a stop request, where it saves. Throws
  /// DataError at a loss or gradient that is not finite, unless they are skipped.
  Outcome run();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gallop::train
