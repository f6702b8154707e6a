#pragma once

#include <utility>
#include <vector>

#include "gallop/train/observer.h"
#include "gallop/train/prove/division.h"
#include "gallop/train/prove/probes.h"

namespace gallop::train {

/// A step of a training as it was computed.
struct RecordedStep {
  int64_t step = 0;  ///< Updates done before it.
  double lr = 0;
  std::vector<double> scheduled;
  Division division;
  NamedTensors batch;  ///< This process's; after gather_batches(), that of all processes.
  StepState before, after;
  double loss = 0, gradient_norm = 0;
  bool is_skipped = false;  ///< The update was skipped, as for fp16 whose loss scale is too high.
  /// With probes: the output of each row that this process, and then any, has computed, and the
  /// gradients. Otherwise undefined and empty.
  at::Tensor outputs;
  NamedTensors gradients;
  /// The outputs of the model's blocks of layers for the rows of `outputs`; empty without
  /// ProbedModel::probe_blocks().
  NamedTensors activations;
};

/// Records the steps of a training as its observer.
class StepRecorder final : public Observer {
 public:
  /// `division` without its rows. All must outlive it. Without probes, outputs and gradients are
  /// not recorded.
  StepRecorder(const model::Model& model, const optim::Optimizer& optimizer, Division division,
               int64_t rank, int64_t ranks)
      : model_(model),
        optimizer_(optimizer),
        division_(std::move(division)),
        rank_(rank),
        ranks_(ranks) {}
  void probe(const ProbedModel& outputs, const ProbedOptimizer& gradients) {
    outputs_ = &outputs;
    gradients_ = &gradients;
  }

  void step_begins(int64_t step) override;
  void step_starts(const StepArguments& arguments) override;
  void stepped(const StepEvent& event) override;

  /// The steps that are complete.
  std::vector<RecordedStep> take();

 private:
  void take_outputs(RecordedStep& step) const;

  const model::Model& model_;
  const optim::Optimizer& optimizer_;
  Division division_;
  int64_t rank_, ranks_;
  const ProbedModel* outputs_ = nullptr;
  const ProbedOptimizer* gradients_ = nullptr;
  StepState now_;
  std::vector<RecordedStep> steps_;
  size_t complete_ = 0;
  int64_t skipped_updates_ = 0;
};

}  // namespace gallop::train
