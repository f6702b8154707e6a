#include "gallop/train/batch_probe.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gallop/base/clock.h"
#include "gallop/data/device_loader.h"
#include "gallop/train/trial_config.h"

namespace gallop::train {

namespace {

// A compiled step is recorded twice, and runs from its plan from then on.
constexpr int64_t kWarmUpSteps = 3, kTimedSteps = 3, kMostSteps = 200;
constexpr double kSeconds = 1;

// Leaves the weights alone: for gradients that are only looked at.
class NoUpdate final : public optim::Optimizer {
 public:
  at::Tensor step(const at::Tensor&, const at::Tensor&, const at::Tensor&,
                  const optim::VariedOptions&) override {
    return {};
  }
  bool can_vary(optim::Varying) const override { return false; }
  NamedTensors state() const override { return {}; }
  double base_lr() const override { return 0; }
};

std::optional<data::Batch> next_batch(data::DeviceLoader& loader, int64_t size,
                                      const StopRequest& stop) {
  for (;;) {
    auto batch = loader.next(&stop);
    if (!batch || stop.requested()) return {};
    if (batch->size() == size) return batch;  // The last of an epoch may be smaller.
  }
}

}  // namespace

std::optional<BatchSpeed> time_batch(model::Model& model, optim::Optimizer& optimizer,
                                     const StepConfig& step_config, const data::Batch& batch,
                                     const StopRequest& stop) {
  model.set_training(true);
  TrainStep step(model, optimizer, step_config);
  const std::vector<double> varied(step_config.varied.size(), 0.0);
  std::vector<double> seconds;
  const double begin = monotonic_seconds();
  double timed = begin;
  for (int64_t number = 0; number < kMostSteps; ++number) {
    if (stop.requested()) return {};
    if (number == kWarmUpSteps) timed = monotonic_seconds();
    const double start = monotonic_seconds();
    // A rate of 0: how long a step takes does not depend on it, and nothing diverges.
    step.run(batch.input, batch.target, number, 0, /*count_guesses=*/false, varied);
    const double now = monotonic_seconds();
    if (number < kWarmUpSteps) continue;
    seconds.push_back(now - start);
    const bool is_enough = static_cast<int64_t>(seconds.size()) >= kTimedSteps;
    if (is_enough && now - timed > kSeconds) break;
    // Long steps vary less.
    if (now - start > kSeconds) break;
  }
  return BatchSpeed{.step_seconds = median(seconds), .splits = step.splits()};
}

std::optional<schedule::NoiseScale> measure_noise(const NoiseParts& parts,
                                                  const NoiseConfig& config,
                                                  const StepConfig& step_config,
                                                  const data::LoaderConfig& loader_config) {
  parts.model.set_training(true);
  const int64_t big = config.small * config.parts;
  StepConfig of_parts = for_trials(step_config);
  StepConfig of_big = of_parts;
  of_parts.accumulate = 1;
  of_big.accumulate = config.parts;
  NoUpdate no_update;
  TrainStep small_step(parts.model, no_update, of_parts);
  TrainStep big_step(parts.model, parts.optimizer, of_big);
  data::LoaderConfig loading = loader_config;
  loading.batch = big;
  data::DeviceLoader loader(parts.samples, loading,
                            {.seed = static_cast<int64_t>(step_config.seed)},
                            parts.model.parameters().front().tensor.device());
  schedule::NoiseScale noise(config.small, big);
  for (int64_t step = 0; step < config.warm_up + config.steps; ++step) {
    const auto batch = next_batch(loader, big, parts.stop);
    if (!batch) return {};
    double squares = 0;
    for (int64_t part = 0; step >= config.warm_up && part < config.parts; ++part) {
      const StepResult result = small_step.run(
          batch->input.narrow(0, part * config.small, config.small).clone(),
          batch->target.narrow(0, part * config.small, config.small).clone(), step, 0, false);
      squares += result.gradient_norm * result.gradient_norm / static_cast<double>(config.parts);
    }
    const double rise = static_cast<double>(step + 1) / static_cast<double>(config.warm_up + 1);
    const double lr = config.lr_factor * parts.optimizer.base_lr() * std::min(1.0, rise);
    const StepResult result = big_step.run(batch->input, batch->target, step, lr, false);
    if (!result.finite) return {};
    if (step >= config.warm_up) noise.add(squares, result.gradient_norm * result.gradient_norm);
  }
  return noise;
}

}  // namespace gallop::train
