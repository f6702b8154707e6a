#include "gallop/train/step/checks.h"

#include <algorithm>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/parallel/parameter_shards.h"
#include "gallop/parallel/pipeline.h"
#include "gallop/train/step/sharing.h"

namespace gallop::train {

void check_optimizer(const StepConfig& config, const optim::Optimizer& optimizer) {
  if (config.sam && config.precision == precision::Precision::kBf16Weights) {
    throw UsageError(
        "train.sam with train.precision=bf16-weights: the perturbation of the weights is below "
        "the resolution of bf16; set train.sam to none, or train.precision to bf16");
  }
  if (!config.sam || optimizer.averaging().kind != optim::Averaging::Kind::kWithin) return;
  throw UsageError(
      "train.sam with a schedule-free optimizer: its average needs the gradients of its own "
      "weights, not those of perturbed weights; set train.sam to none, or use another optimizer");
}

void check_division(const StepConfig& config, const std::string& option) {
  if (config.sam) {
    throw UsageError(
        fmt::format("train.sam with {}: perturbing the weights needs all gradients of the whole "
                    "batch in every process, and each process has only those of its own shard; set "
                    "train.sam to none, or use parallel.name=ddp",
                    option));
  }
  if (config.clip_adaptive) {
    throw UsageError(
        fmt::format("train.clip_adaptive with {}: it clips whole rows of weights, and each process "
                    "updates only parts of them; use train.clip_grad_norm, or parallel.name=ddp",
                    option));
  }
}

namespace {

void check_in_replicas(const StepConfig& config, const optim::Optimizer& optimizer) {
  if (config.skip_nonfinite || config.precision == precision::Precision::kFp16) {
    throw UsageError(
        "train.on_nonfinite=skip and train.precision=fp16 skip updates, and the replicas of "
        "parallel.name=local-sgd and diloco would skip different updates; use "
        "train.on_nonfinite=stop and train.precision=bf16 or fp32, or parallel.name=ddp");
  }
  if (config.loss->traits().compares_samples) {
    throw UsageError(
        "train.loss compares all samples of a batch, which the replicas of parallel.name=local-sgd "
        "and diloco do not exchange; use parallel.name=ddp");
  }
  if (optimizer.averaging().kind == optim::Averaging::Kind::kNone) return;
  throw UsageError(
      "parallel.name=local-sgd and diloco exchange weights, but not the weight average that this "
      "optimizer keeps; use another optimizer, or parallel.name=ddp");
}

void check_in_pipeline(const StepConfig& config) {
  if (config.sam) check_division(config, "parallel.name=pipeline");
  const LossTraits loss = config.loss->traits();
  if (config.strategy->collectives().size() > 1 &&
      (loss.needs_whole_batch || loss.compares_samples)) {
    throw UsageError(
        fmt::format("train.loss needs the whole batch, which a pipeline divides; use "
                    "parallel.name=ddp{}",
                    loss.needs_whole_batch ? " with one process" : ""));
  }
}

void check_in_tensor(const StepConfig& config) {
  if (config.clip_adaptive) {
    StepConfig clip;
    clip.clip_adaptive = config.clip_adaptive;
    check_division(clip, config.strategy->pipeline() != nullptr ? "parallel.tensor_parallel_degree"
                                                                : "parallel.name=tensor");
  }
}

void check_in_expert(const StepConfig& config) {
  if (!config.compile) return;
  throw UsageError(
      "train.compile with parallel.name=expert: steps whose experts are divided are not compiled "
      "yet; set train.compile=false");
}

void check_loss(const StepConfig& config) {
  const LossTraits traits = config.loss->traits();
  const auto is_varied = [&](ScheduledParameter value) {
    return std::find(config.scheduled.begin(), config.scheduled.end(), value) !=
           config.scheduled.end();
  };
  if (is_varied(ScheduledParameter::kLabelSmoothing) && !traits.takes_smoothing) {
    throw UsageError(
        "schedules.label_smoothing is an option of the loss cross-entropy; omit it, or use "
        "train.loss=cross-entropy");
  }
  const StepSharing sharing(config.strategy);
  const bool is_in_slices = sharing.batch_slices() > 0;
  const bool is_divided = is_in_slices || (traits.needs_whole_batch && sharing.divides_batch());
  if ((traits.needs_whole_batch || traits.compares_samples) &&
      (config.gradient_accumulation > 1 || is_divided)) {
    throw UsageError(fmt::format(
        "train.loss needs the whole batch, which cannot be computed in parts; {}",
        !is_divided                ? "set train.gradient_accumulation to 1"
        : traits.needs_whole_batch ? "start one process, without parallel.name=deterministic"
                                   : "use parallel.name=ddp"));
  }
}

}  // namespace

void check_step(const StepConfig& config, const optim::Optimizer& optimizer) {
  check_loss(config);
  if (config.strategy == nullptr) return;
  parallel::Strategy& strategy = *config.strategy;
  if (strategy.shards() != nullptr) check_division(config, strategy.shards()->option());
  if (strategy.averager() != nullptr) check_in_replicas(config, optimizer);
  if (strategy.pipeline() != nullptr) check_in_pipeline(config);
  if (strategy.forward_group() != nullptr) {
    if (strategy.divides_forward_by_samples()) {
      check_in_expert(config);
    } else if (strategy.model_is_in_parts()) {
      check_in_tensor(config);
    }
  }
  if (strategy.batch_slices() > 0 && config.gradient_accumulation > 1) {
    throw UsageError(fmt::format(
        "train.gradient_accumulation with parallel.name=deterministic, which computes every batch "
        "in {} parts as it is; set train.gradient_accumulation to 1",
        strategy.batch_slices()));
  }
}

}  // namespace gallop::train
