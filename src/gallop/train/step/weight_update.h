#pragma once

#include <optional>
#include <string>

#include <ATen/core/Tensor.h>

#include "gallop/optim/optimizer.h"
#include "gallop/optim/updated_parameters.h"
#include "gallop/precision/grad_scaler.h"
#include "gallop/train/spike_watch.h"
#include "gallop/train/step/config.h"
#include "gallop/train/step/sharing.h"
#include "gallop/train/step/tensors.h"

namespace gallop::train {

/// The end of a step: detects spikes, unscales and clips the gradients, and runs the optimizer.
class WeightUpdate {
 public:
  /// All must outlive this. `parameters` are those of the model.
  WeightUpdate(const NamedTensors& parameters, optim::Optimizer& optimizer,
               const StepConfig& config, const StepSharing& sharing);

  struct Result {
    at::Tensor gradient_norm;  ///< Before it is clipped.
    at::Tensor spike;          ///< StepOutputs::spike; undefined if spikes are not detected.
  };
  /// `share`: the fraction of the batch whose samples are not broken; undefined for 1. Nothing is
  /// updated if `idle`, which may be undefined, is not 0, nor if the loss is not finite.
  Result run(const StepInputs& inputs, const at::Tensor& loss_sum, const at::Tensor& share,
             const at::Tensor& idle);

  /// What the optimizer updates.
  const optim::UpdatedParameters& updated() const;
  /// Whether gradients of parts remain after an update. Other parts give the memory of gradients to
  /// the parameters that are gathered then.
  bool keeps_gradients_of_parts() const;

  /// The live scale of losses with fp16; undefined with other formats.
  at::Tensor loss_scale() const { return scaler_ ? scaler_->scale() : at::Tensor(); }
  /// See TrainStep::state().
  NamedTensors state() const;

  /// Whether an update may have changed parameters since the last reset().
  bool has_begun() const { return has_begun_; }
  void reset() { has_begun_ = false; }

 private:
  at::Tensor apply(const StepInputs& inputs, at::Tensor found_inf, const at::Tensor& share);
  at::Tensor gradient_scale(const StepInputs& inputs, const at::Tensor& share) const;

  const NamedTensors& parameters_;
  optim::WholeParameters whole_;
  optim::Optimizer& optimizer_;
  const StepConfig& config_;
  const StepSharing& sharing_;
  std::optional<precision::GradScaler> scaler_;
  std::optional<SpikeWatch> spikes_;
  bool has_begun_ = false;
};

}  // namespace gallop::train
