#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "gallop/model/model.h"
#include "gallop/optim/optimizer.h"
#include "gallop/train/step/config.h"

namespace gallop::train {

/// Rows [begin, end) of a batch.
struct RowRange {
  int64_t begin = 0, end = 0;
};

/// Rows that are computed together.
using Rows = std::vector<RowRange>;

/// Rows that draw their dropout one after the other from one seed. Each part starts from the
/// buffers before the step, and those after it are the mean over the parts.
struct BatchPart {
  uint64_t seed = 0;
  std::vector<Rows> pieces;
};

/// Parameters, buffers and optimizer state before or after a step.
struct StepState {
  NamedTensors parameters, buffers, optimizer;
};

/// The state of a training: copies of its tensors.
StepState copy_state(const model::Model& model, const optim::Optimizer& optimizer);

/// What a step computes.
struct StepValues {
  double loss = 0;
  double gradient_norm = 0;         ///< Before clipping.
  std::vector<at::Tensor> outputs;  ///< Output::x of each piece.
  /// The outputs of the model's blocks of layers, for each piece.
  std::vector<NamedTensors> activations;
  NamedTensors gradients;  ///< Clipped; undefined for parameters without one.
};

/// The reference that steps are compared with: a training step with LibTorch's operators, called
/// eagerly in one process, without code of TrainStep.
class PlainStep {
 public:
  /// `config` describes the training. Its precision is that of this step; the parameters may be
  /// fp64, for a precision of fp32. Losses are multiplied by `loss_scale` within the backward pass.
  /// `updated` are the parameters that the optimizer updates: those of the model if it is empty,
  /// else their copies in another type, for optimizers that do not support fp64.
  PlainStep(model::Model& model, optim::Optimizer& optimizer, const StepConfig& config,
            double loss_scale = 1, NamedTensors updated = {});

  /// Copies a state into model and optimizer, converting its types. Throws InternalError if names
  /// or shapes differ.
  void load(const StepState& state);

  /// `batch` as TrainStep::start() takes it, of all processes; `step`, `lr` and `values` too.
  StepValues run(const NamedTensors& batch, const std::vector<BatchPart>& parts, int64_t step,
                 double lr, const std::vector<double>& values);

  /// Whether the model draws dropout in a forward pass of these rows, which changes nothing but
  /// statistics. Throws what LibTorch throws if the model cannot be computed in this type.
  bool draws_dropout(const NamedTensors& batch);

  model::Model& model() { return model_; }
  const optim::Optimizer& optimizer() const { return optimizer_; }

 private:
  at::Tensor scheduled(ScheduledParameter value, const std::vector<double>& values) const;
  NamedTensors own_batch(const NamedTensors& batch) const;
  std::vector<double> factors_of(const NamedTensors& batch) const;
  double forward_backward(const NamedTensors& batch, const std::vector<BatchPart>& parts,
                          int64_t step, const std::vector<double>& values, StepValues* kept);
  void perturb_weights(double distance);
  double clip();
  void update(int64_t step, double lr, const std::vector<double>& values);

  model::Model& model_;
  optim::Optimizer& optimizer_;
  NamedTensors parameters_, updated_;
  StepConfig config_;
  double loss_scale_;
};

/// Converts the parameters and buffers of a model to fp64 in place. Call it before an optimizer or
/// a step uses them.
void convert_to_fp64(const model::Model& model);

}  // namespace gallop::train
