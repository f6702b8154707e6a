#pragma once

#include <cstdint>
#include <memory>

#include <ATen/core/Tensor.h>

#include "gallop/model/model.h"
#include "gallop/optim/optimizer.h"
#include "gallop/tensor/named_tensor.h"
#include "gallop/tensor/tensor_group.h"
#include "gallop/train/step/batch_loss.h"
#include "gallop/train/step/config.h"
#include "gallop/train/step/forward_backward.h"
#include "gallop/train/step/micro_batches.h"
#include "gallop/train/step/sharing.h"
#include "gallop/train/step/tensors.h"
#include "gallop/train/step/weight_update.h"

namespace gallop::train {

/// A training step as a function of tensors: count, forward, loss, backward, clip, update. It reads
/// nothing on the host, so that it can be traced and compiled. Gradients of k micro-batches equal
/// those of one batch, as every sum is divided by the count of the whole batch over all processes,
/// excluding ignored targets and including weights of targets.
class StepFunction {
 public:
  /// All must outlive this.
  StepFunction(model::Model& model, optim::Optimizer& optimizer, const StepConfig& config,
               const StepSharing& sharing);

  StepOutputs operator()(const StepInputs& inputs, bool count_correct);
  /// The first half alone, which leaves the gradients in the parameters.
  void compute_gradients(const StepInputs& inputs);

  const NamedTensors& parameters() const { return parameters_; }
  const BatchLoss& loss() const { return loss_; }
  WeightUpdate& update() { return update_; }
  const WeightUpdate& update() const { return update_; }
  MicroBatches& micro_batches() { return micro_batches_; }
  const MicroBatches& micro_batches() const { return micro_batches_; }
  ForwardBackward& passes() { return passes_; }
  /// What the function depends on besides its inputs and their sizes.
  int64_t mode(bool count_correct) const;

  /// All tensors that the function uses besides its inputs.
  NamedTensors tensors() const;

 private:
  BatchCounts count_targets(const StepInputs& inputs) const;
  BatchSums run_perturbed(const StepInputs& inputs, const BatchCounts& counts,
                          const BatchSums& first);
  void update_statistics(const BatchSums& sums, const StepInputs& inputs);

  model::Model& model_;
  optim::Optimizer& optimizer_;
  const StepConfig& config_;
  const StepSharing& sharing_;
  NamedTensors parameters_;
  BatchLoss loss_;
  MicroBatches micro_batches_;
  WeightUpdate update_;
  ForwardBackward passes_;
  /// The processes whose samples the loss compares; null if it compares none.
  std::unique_ptr<TensorGroup> rows_group_;
};

}  // namespace gallop::train
