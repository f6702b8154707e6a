#include "gallop/train/batch_probe.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gallop/base/clock.h"
#include "gallop/base/error.h"
#include "gallop/data/device_loader.h"
#include "gallop/parallel/model_averager.h"
#include "gallop/train/measured_choice.h"
#include "gallop/train/step/step.h"
#include "gallop/train/trial_config.h"

namespace gallop::train {

namespace {

// A compiled step is traced twice, and runs from its plan from then on.
constexpr int64_t kWarmUpSteps = 3, kTimedSteps = 3, kMostSteps = 200;
// Overflows of a loss scale that begins at 2^16, until it is below any that a training needs.
constexpr int64_t kMostOverflows = 32;
constexpr double kSeconds = 1, kBusySeconds = 4;

// An optimizer that leaves the weights unchanged, for passes that need only the gradients.
class NoUpdate final : public optim::Optimizer {
 public:
  at::Tensor step(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                  const optim::ScheduledOptions&) override {
    return {};
  }
  bool can_schedule(optim::ScheduledOption) const override { return false; }
  NamedTensors state() const override { return {}; }
  double base_lr() const override { return 0; }
};

// The same number of batches in all processes; if shared, the steps' requests decide on a stop.
// None if two epochs of `samples` have no batch without broken samples.
std::optional<data::Batch> next_batch(data::DeviceLoader& loader, int64_t samples, int64_t size,
                                      const StopRequest* stop) {
  for (int64_t seen = 0; seen < 2 * samples; seen += size) {
    auto batch = loader.next(stop);
    if (!batch || (stop != nullptr && stop->requested())) return {};
    // The last batch of an epoch may be smaller.
    if ((stop != nullptr ? batch->size() : batch->whole_size) == size) return batch;
  }
  return {};
}

bool requests_stop(const StepResult& result) {
  return result.requests[static_cast<size_t>(StepRequest::kStop)];
}

NamedTensors part_of(const data::Batch& batch, int64_t part, int64_t parts) {
  const int64_t rows = batch.rows();
  NamedTensors slice = slice_rows(batch.by_role(), rows * part / parts, rows * (part + 1) / parts);
  for (NamedTensor& field : slice) field.tensor = field.tensor.clone();
  return slice;
}

}  // namespace

std::optional<BatchSpeed> time_batch(model::Model& model, optim::Optimizer& optimizer,
                                     const StepConfig& step_config, const data::Batch& batch,
                                     const StopRequest& stop) {
  model.set_training(true);
  TrainStep step(model, optimizer, step_config);
  const bool is_shared = step_config.strategy != nullptr;
  const std::vector<double> scheduled(step_config.scheduled.size(), 0.0);
  MeasuredCost least;
  int64_t timed_steps = 0;
  bool is_enough = false;
  double timed = monotonic_seconds();
  for (int64_t number = 0; number < kMostSteps; ++number) {
    if (number == kWarmUpSteps) timed = monotonic_seconds();
    const CostMeter meter(/*works=*/false);
    // A learning rate of 0, as it does not affect the time of a step and nothing diverges.
    const StepResult result =
        step.run(batch.by_role(), number, 0, /*count_correct=*/false, scheduled,
                 {.rows = batch.whole_size,
                  .own_rows = batch.size(),
                  .requests = {is_enough || stop.requested()}});
    const MeasuredCost cost = meter.read();
    if (stop.requested() && !is_shared) return {};
    if (number >= kWarmUpSteps) {
      if (timed_steps == 0 || cost.seconds < least.seconds) least = cost;
      timed_steps += 1;
      const double taken = monotonic_seconds() - timed;
      // The times of long steps vary less.
      const bool has_some = timed_steps >= kTimedSteps || cost.seconds > kSeconds;
      const bool is_busy = least.busy > MeasuredChoiceConfig().busy;
      is_enough = has_some && taken > (is_busy ? kBusySeconds : kSeconds);
    }
    if (is_shared ? requests_stop(result) : is_enough) break;
  }
  if (stop.requested() || timed_steps == 0) return {};
  return BatchSpeed{.step_seconds = least.seconds, .busy = least.busy, .splits = step.splits()};
}

std::optional<schedule::NoiseScale> measure_noise(const NoiseParts& parts,
                                                  const NoiseConfig& config,
                                                  const StepConfig& step_config,
                                                  const data::LoaderConfig& loader_config) {
  if (step_config.strategy != nullptr && step_config.strategy->averager() != nullptr) {
    throw UsageError(
        "the gradient noise scale is measured with gradients that are summed over all processes, "
        "which local-sgd and diloco do not do; measure it with parallel.name=ddp");
  }
  parts.model.set_training(true);
  const int64_t big = config.small * config.parts;
  StepConfig of_parts = for_trials(step_config);
  StepConfig of_big = of_parts;
  of_parts.gradient_accumulation = 1;
  // Batch slices are computed separately anyway.
  const bool has_slices =
      step_config.strategy != nullptr && step_config.strategy->batch_slices() > 0;
  of_big.gradient_accumulation = has_slices ? 1 : config.parts;
  NoUpdate no_update;
  TrainStep small_step(parts.model, no_update, of_parts);
  TrainStep big_step(parts.model, parts.optimizer, of_big);
  data::LoaderConfig loading = loader_config;
  loading.batch = big;
  data::DeviceLoader loader(parts.samples, loading,
                            {.seed = static_cast<int64_t>(step_config.seed)},
                            parts.model.parameters().front().tensor.device());
  const StopRequest* const stop = step_config.strategy == nullptr ? &parts.stop : nullptr;
  schedule::NoiseScale noise(config.small, big);
  int64_t overflows = 0;  // Steps by which fp16 finds its loss scale.
  for (int64_t step = 0; step < config.warm_up + config.steps + overflows; ++step) {
    const auto batch = next_batch(loader, parts.samples.size(), big, stop);
    if (!batch) return {};
    double squares = 0;
    bool are_finite = true;
    const int64_t counted = step - config.warm_up - overflows;
    // With a loss scale of its own, which is found by steps of all parts.
    const bool needs_parts = counted >= 0 || small_step.skips_nonfinite();
    for (int64_t part = 0; needs_parts && part < config.parts; ++part) {
      const StepResult result = small_step.run(part_of(*batch, part, config.parts), step, 0, false,
                                               {}, {.rows = config.small});
      are_finite = are_finite && result.finite;
      squares += result.gradient_norm * result.gradient_norm / static_cast<double>(config.parts);
    }
    const double rise = static_cast<double>(step + 1) / static_cast<double>(config.warm_up + 1);
    const double lr = config.lr_factor * parts.optimizer.base_lr() * std::min(1.0, rise);
    const StepResult result = big_step.run(batch->by_role(), step, lr, false, {},
                                           {.rows = big, .requests = {parts.stop.requested()}});
    if (requests_stop(result)) return {};
    if (!result.finite || !are_finite) {
      if (!big_step.skips_nonfinite() || overflows == kMostOverflows) return {};
      ++overflows;
      continue;
    }
    if (counted >= 0) noise.add(squares, result.gradient_norm * result.gradient_norm);
  }
  return noise;
}

}  // namespace gallop::train
