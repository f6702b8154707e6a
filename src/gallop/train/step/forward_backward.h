#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/model/model.h"
#include "gallop/train/step/batch_loss.h"
#include "gallop/train/step/config.h"
#include "gallop/train/step/micro_batches.h"
#include "gallop/train/step/sharing.h"
#include "gallop/train/step/tensors.h"

namespace gallop::train {

class PipelineStep;

/// Sums over a batch.
struct BatchSums {
  at::Tensor loss;          ///< fp64 scalar.
  at::Tensor correct;       ///< int64 scalar, if it is counted; undefined if processes share it.
  at::Tensor shared;        ///< fp64, indexed by SharedSum; undefined without a strategy.
  at::Tensor statistics{};  ///< model::Output::step_statistics, of this process.
};

/// The forward and backward passes of the micro-batches of a batch.
class ForwardBackward {
 public:
  /// All must outlive this. `loss_scale`: the live scale of a gradient scaler, or undefined.
  ForwardBackward(model::Model& model, const StepConfig& config, const StepSharing& sharing,
                  const MicroBatches& micro_batches, const BatchLoss& loss, at::Tensor loss_scale);
  ~ForwardBackward();
  ForwardBackward(const ForwardBackward&) = delete;
  ForwardBackward& operator=(const ForwardBackward&) = delete;

  /// Leaves the gradients of the whole batch in the parameters, or in what the strategy updates.
  BatchSums run(const StepInputs& inputs, const BatchCounts& counts, bool count_correct);

  /// In a pipeline, plans the stages for the sizes of the batch. Not within the step, of which a
  /// dry run may record nothing but the step itself. Returns whether buffers may have changed and
  /// LibTorch's generator been used; see PipelineStep::plan_stages().
  bool plan_pipeline(const NamedTensors& batch);

 private:
  /// Sums while micro-batches are computed.
  struct Partial {
    at::Tensor correct, statistics;
    std::vector<at::Tensor> losses;  ///< Of each batch slice; undefined for other processes'.

    void add(const Losses& of_micro_batch, int64_t slice);
  };
  Partial run_micro_batches(const StepInputs& inputs, const BatchCounts& counts,
                            bool count_correct);
  Partial run_pipeline(const StepInputs& inputs, const BatchCounts& counts, bool count_correct);
  Losses forward(const NamedTensors& batch, const StepInputs& inputs, const BatchCounts& counts,
                 bool count_correct);
  Losses losses_of(model::Output output, const NamedTensors& batch, const StepInputs& inputs,
                   const BatchCounts& counts, bool count_correct) const;
  void backward(const at::Tensor& loss_sum, const StepInputs& inputs);
  at::Tensor loss_gradient(const StepInputs& inputs) const;
  void begin_gradient_sync(bool is_first, bool is_last);
  BatchSums sums_over_processes(const Partial& sums, const StepInputs& inputs);
  std::function<void(const std::function<void()>& pass)> in_format() const;

  model::Model& model_;
  const StepConfig& config_;
  const StepSharing& sharing_;
  const MicroBatches& micro_batches_;
  const BatchLoss& loss_;
  at::Tensor loss_scale_;
  at::Device device_;
  NamedTensors parameters_;
  std::unique_ptr<PipelineStep> pipeline_;  ///< Null if this process computes the whole model.
};

}  // namespace gallop::train
