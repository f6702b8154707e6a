#pragma once

// The implementation that trainer.cpp shares with trainer_steps.cpp, trainer_evaluation.cpp,
// trainer_checkpoints.cpp and trainer_comparison.cpp.

#include <algorithm>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "gallop/base/clock.h"
#include "gallop/data/device_loader.h"
#include "gallop/train/broken_samples.h"
#include "gallop/train/checkpoint_writer.h"
#include "gallop/train/process_group.h"
#include "gallop/train/progress.h"
#include "gallop/train/skipped_samples.h"
#include "gallop/train/state_watch.h"
#include "gallop/train/throughput.h"
#include "gallop/train/trainer.h"
#include "gallop/train/trigger.h"

namespace gallop::train {

/// The sizes of all batches of a new run with so many samples.
BatchHistory planned_history(const TrainConfig& config, const data::LoaderConfig& loader,
                             int64_t samples);

struct Trainer::Impl {
  // A step whose results may be in flight.
  struct Started {
    StepEvent event;
    int64_t samples = 0;
    bool has_samples = true;  // False if nothing was computed.
  };

  TrainerParts parts;
  TrainConfig config;
  EvaluateConfig evaluate_config;
  data::LoaderConfig loader_config;
  ProcessGroup process_group;
  data::DeviceLoader loader;
  TrainStep step;
  Length length;
  Progress progress;
  SkippedSamples skipped_samples;
  BrokenSamples broken;
  int64_t pause_step;  // The step of TrainerParts::until.
  Trigger evaluation_trigger, checkpoint_trigger, comparison_trigger;
  StateWatch state_watch;
  int64_t compared_step = -1;
  Throughput throughput;
  int64_t record_every;
  double started = monotonic_seconds();
  Stopwatch clock;  // Training time, without evaluation and saving.
  double earlier_seconds = 0;
  int64_t saved_step = -1;
  CheckpointWriter writer;
  bool is_saving = false;        // Equal in all processes.
  int64_t recomputed_step = -1;  // Step of the weights whose statistics were recomputed.
  size_t reported_reasons = 0;
  bool wants_rewind = false;
  std::string note_of_replicas;  // Note of the last checkpoint; reported when the run continues.
  bool has_mean_of_replicas = false;  // After run(), for those who read the model.
  // The requests that all processes of the group have agreed on.
  StepRequests agreed{};
  std::deque<std::pair<int64_t, StepRequests>>
      // By step; they take effect when the results of the step are available.
      requests;
  int64_t steps_here = 0;        // Steps of this process.
  int64_t step_began_ns = 0;     // Begin of the step that is traced; 0: none is.
  int64_t steps_to_compile = 2;  // The number of steps still to be traced and compiled.
  Outcome outcome;
  std::deque<Started> started_steps;

  Impl(const TrainerParts& parts_, const TrainConfig& config_, const StepConfig& step_config,
       const data::LoaderConfig& loader_config_, const EvaluateConfig& evaluate_config_);

  void begin_with_equal_replicas();

  // The loop: evaluates, saves and trains, each when it is due.
  Outcome run();
  StepRequests local_requests() const;
  bool requested(StepRequest request) const;
  bool is_due(const Trigger& trigger, StepRequest request) const;
  void apply_requests();
  void satisfy(StepRequest request);
  Outcome finish(bool finished);
  bool evaluation_is_due() const;
  bool cycle_is_over();

  // Steps. train_one() returns false if a stop was requested first.
  void begin_step();
  bool train_one();
  void start_step(const data::Batch& batch, double lr, bool record,
                  const std::vector<double>& scheduled, const data::LoaderState& position);
  void report_what_is_there();
  void report_all();
  void report_oldest();
  void note_spike(const StepEvent& event);
  void note_broken(int64_t index);
  void share_broken();
  void tell_of_compiling();
  void tell_of_unused();
  void check(const StepResult& result, int64_t number) const;
  StepEvent event_of(double lr, const std::vector<double>& scheduled, bool record) const;
  std::string what_to_do() const;

  // Evaluation. Both functions return false if a stop was requested first.
  bool evaluate_now();
  bool recompute_statistics();
  void gather_for_evaluation();
  std::string metric() const;
  double score(const Evaluation& evaluation) const;
  bool is_out_of_patience() const;
  void note_without_best();
  std::string why_early() const;

  // Comparison with the other processes.
  bool comparison_is_due() const;
  bool compare_states();
  void go_back(const std::string& why);

  // Checkpoints.
  NamedTensors live_model() const;
  std::vector<LogicalTensor> logical_model() const;
  TrainingState state();
  void save(bool best);
  void take_model(const NamedTensors& of_rank0);
  int slices_of(int64_t bytes) const;
  void tell_saved(const std::optional<CheckpointInfo>& info);
  void note_saved();
  void finish_saving();
  void resume(const std::optional<CheckpointInfo>& checkpoint);
  void load(const std::optional<CheckpointInfo>& checkpoint, TrainingState& into);
  void measure(const BatchHistory& history);
  void check_end() const;
  void take(const std::optional<CheckpointInfo>& checkpoint);
  void rewind();
  void restore_best();
  void keep(Kept why);
  bool keeps_prefix() const {
    return std::binary_search(parts.keep_at.begin(), parts.keep_at.end(), progress.step);
  }

  template <typename Function, typename... Args>
  void tell(Function function, const Args&... args) {
    for (Observer* observer : parts.observers) (observer->*function)(args...);
  }

  bool is_last() const { return progress.step >= length.steps; }
  // Each schedule with the name of its state in checkpoints.
  std::vector<std::pair<std::string, schedule::Schedule*>> schedules() const {
    std::vector<std::pair<std::string, schedule::Schedule*>> all = {{"schedule", &parts.schedule}};
    for (const ParameterSchedule& one : parts.scheduled) {
      if (one.schedule == nullptr) continue;
      all.emplace_back(std::string("schedules.") + name_of(one.value), one.schedule);
    }
    return all;
  }

  // The progress of schedules, which do not advance at skipped updates.
  double share_of(int64_t samples) {
    samples -= skipped_samples.samples_before(progress.step);
    return std::min(1.0, length.progress(samples));
  }
  double share_done() { return share_of(progress.samples); }
  double epoch() const { return length.epochs_after(progress.step); }
  double wait_share() const;
  double training_seconds() const { return earlier_seconds + clock.seconds(); }
};

}  // namespace gallop::train
