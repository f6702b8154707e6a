#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "gallop/compile/compiled_function.h"
#include "gallop/parallel/strategy.h"
#include "gallop/precision/grad_scaler.h"
#include "gallop/precision/precision.h"
#include "gallop/train/async_results.h"
#include "gallop/train/distillation.h"
#include "gallop/train/losses/loss.h"
#include "gallop/train/spike_watch.h"

namespace gallop::train {

/// Parameters other than the learning rate that may change from step to step.
enum class ScheduledParameter { kLabelSmoothing, kMomentum, kBeta2, kWeightDecay, kDropout };

/// "label_smoothing"
const char* name_of(ScheduledParameter value);

struct StepConfig {
  precision::Precision precision = precision::Precision::kFp32;
  precision::GradScalerConfig loss_scale{};  ///< For fp16.
  int64_t gradient_accumulation = 1;         ///< Micro-batches per batch.
  std::optional<double> clip_grad_norm;      ///< Maximum global norm of the gradients.
  std::optional<double> clip_value{};        ///< See optim::clip_values().
  std::optional<double> clip_adaptive{};     ///< See optim::clip_adaptively().
  /// If set, gradients are those at this distance from the weights, in the direction in which the
  /// loss rises fastest (Foret et al., "Sharpness-aware minimization for efficiently improving
  /// generalization", ICLR 2021). Each step is computed twice; only the first pass changes buffers.
  std::optional<double> sam{};
  std::shared_ptr<const Loss> loss = cross_entropy_loss();  ///< The loss to minimize; never null.
  /// Whether no target is ever ignored (data::Samples::every_target_counts()). The count of a loss
  /// that depends on nothing else then follows from sizes, and is not computed.
  bool every_target_counts = false;
  /// Whether batches have a field "weight", which multiplies losses and counts of targets.
  bool has_weights = false;
  std::optional<Distillation> distill{};
  std::optional<SpikeConfig> spikes{};  ///< If set, an update at a spike is skipped.
  /// Parameters whose values are passed to each TrainStep::start(), in this order, as inputs of a
  /// compiled step. They replace the values of this config, of the optimizer's options and of the
  /// model. The optimizer must support them, and kDropout requires a model with dropout.
  std::vector<ScheduledParameter> scheduled{};
  uint64_t seed = 1;  ///< Seed of dropout.
  /// Whether to skip the update if a gradient is not finite, at the cost of one more pass over the
  /// gradients. Otherwise the update is applied, and StepResult::finite reports it afterwards, so
  /// that the caller can stop.
  bool skip_nonfinite = false;
  /// If set, the step is traced and the compiled graph is run; see compile::CompiledFunction.
  std::optional<compile::CompileConfig> compile{};
  /// If set, processes share each step: each passes its slice of the batch, gradients are those of
  /// the whole batch, and results are the same in all processes.
  parallel::Strategy* strategy = nullptr;
  /// How results are copied to the host.
  MakeAsyncResults make_results = make_async_results;

  bool clips() const { return clip_grad_norm || clip_value || clip_adaptive; }
};

}  // namespace gallop::train
