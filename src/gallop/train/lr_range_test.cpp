#include "gallop/train/lr_range_test.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <ATen/core/grad_mode.h>

#include "gallop/data/device_loader.h"

namespace gallop::train {

namespace {

// What training changes, to put it back.
class Kept {
 public:
  Kept(const LrRangeTestParts& parts, const TrainStep& step) {
    for (const auto& list :
         {parts.model.parameters(), parts.model.buffers(), parts.optimizer.state(), step.state()}) {
      for (const auto& [name, tensor] : list) {
        live_.push_back(tensor);
        copies_.push_back(tensor.detach().clone());
      }
    }
  }

  void put_back() const {
    const at::NoGradGuard no_gradients;
    for (size_t i = 0; i < live_.size(); ++i) live_[i].copy_(copies_[i]);
  }

 private:
  std::vector<at::Tensor> live_, copies_;
};

// What a schedule would change stays as it is in the recipe.
StepConfig without_schedules(StepConfig config) {
  config.varied.clear();
  return config;
}

class Test {
 public:
  Test(const LrRangeTestParts& parts, const LrRangeTestConfig& config,
       const StepConfig& step_config, const data::LoaderConfig& loader_config)
      : config_(config),
        stop_(parts.stop),
        start_{.seed = static_cast<int64_t>(step_config.seed)},
        loader_(parts.samples, loader_config, start_,
                parts.model.parameters().front().tensor.device()),
        step_(parts.model, parts.optimizer, without_schedules(step_config)),
        kept_(parts, step_) {}
  ~Test() { kept_.put_back(); }
  Test(const Test&) = delete;
  Test& operator=(const Test&) = delete;

  LrRangeTest run(const std::function<void(const schedule::RangePoint&)>& told) {
    LrRangeTest result;
    schedule::SmoothedLoss smoothed(config_.memory);
    double lowest = std::numeric_limits<double>::infinity();
    for (const double lr :
         schedule::rates_between(config_.min, config_.max, config_.rates, config_.linear)) {
      const std::optional<double> loss = loss_at(lr);
      if (!loss) {
        result.stopped = true;
        break;
      }
      // A loss that is no number says as much as a high one, but cannot be part of a mean.
      if (!std::isfinite(*loss)) {
        result.diverged = true;
        break;
      }
      result.points.push_back({.lr = lr, .loss = *loss, .smoothed = smoothed.add(*loss)});
      if (told) told(result.points.back());
      const double now = result.points.back().smoothed;
      if (now > config_.divergence * lowest) {
        result.diverged = true;
        break;
      }
      lowest = std::min(lowest, now);
    }
    return result;
  }

 private:
  // Nothing where the test is to stop.
  std::optional<double> loss_at(double lr) {
    if (config_.steps_each == 0) return loss_of_step(lr);
    kept_.put_back();
    loader_.seek(start_);
    number_ = 0;
    for (int64_t step = 0; step < config_.steps_each; ++step) {
      if (!loss_of_step(lr)) return {};
    }
    return loss_of_step(lr);
  }

  // Of a batch, before the update.
  std::optional<double> loss_of_step(double lr) {
    std::optional<data::Batch> batch;
    do {
      batch = loader_.next(&stop_);
      if (!batch || stop_.requested()) return {};
    } while (batch->size() == 0);
    const StepResult result =
        step_.run(batch->input, batch->target, number_++, lr, /*count_guesses=*/false);
    return result.tally.loss();
  }

  const LrRangeTestConfig& config_;
  const StopRequest& stop_;
  data::LoaderState start_;
  data::DeviceLoader loader_;
  TrainStep step_;
  Kept kept_;
  int64_t number_ = 0;
};

}  // namespace

LrRangeTest test_lr_range(const LrRangeTestParts& parts, const LrRangeTestConfig& config,
                          const StepConfig& step_config, const data::LoaderConfig& loader_config,
                          const std::function<void(const schedule::RangePoint&)>& told) {
  parts.model.set_training(true);
  return Test(parts, config, step_config, loader_config).run(told);
}

}  // namespace gallop::train
