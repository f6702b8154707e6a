#include "gallop/train/lr_range_test.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gallop/data/device_loader.h"
#include "gallop/train/process_group.h"
#include "gallop/train/step/step.h"
#include "gallop/train/tensor_snapshot.h"
#include "gallop/train/trial_config.h"

namespace gallop::train {

namespace {

// A snapshot of everything that training changes.
TensorSnapshot kept_of(const LrRangeTestParts& parts, const TrainStep& step,
                       const parallel::Strategy* strategy) {
  TensorSnapshot kept(parts.model.parameters());
  for (const auto& list : {parts.model.buffers(), parts.optimizer.state(), step.state()}) {
    kept.keep(list);
  }
  if (strategy != nullptr) kept.keep(strategy->rank_state());
  return kept;
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
        step_(parts.model, parts.optimizer, for_trials(step_config)),
        is_shared_(step_config.strategy != nullptr),
        process_group_(group_from_here(step_config.strategy, parts.model)),
        kept_(kept_of(parts, step_, step_config.strategy)) {}
  ~Test() {
    kept_.restore();
    process_group_.begin(parallel::Section::kStart, 0);
  }
  Test(const Test&) = delete;
  Test& operator=(const Test&) = delete;

  LrRangeTest run(const std::function<void(const schedule::RangePoint&)>& on_point) {
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
      // A non-finite loss indicates divergence, too, but cannot be part of a mean.
      if (!std::isfinite(*loss)) {
        result.diverged = true;
        break;
      }
      result.points.push_back({.lr = lr, .loss = *loss, .smoothed = smoothed.add(*loss)});
      if (on_point) on_point(result.points.back());
      const double now = result.points.back().smoothed;
      if (has_diverged(now, result.points.front().smoothed, lowest)) {
        result.diverged = true;
        break;
      }
      lowest = std::min(lowest, now);
    }
    return result;
  }

 private:
  static ProcessGroup group_from_here(parallel::Strategy* strategy, const model::Model& model) {
    const ProcessGroup process_group(strategy);
    for (const auto& tensors : {model.parameters(), model.buffers()}) {
      process_group.broadcast_parameters(tensors);
    }
    return process_group;
  }

  // A loss that can be negative, such as that of poisson-nll, is compared with how far it has
  // fallen.
  bool has_diverged(double now, double first, double lowest) const {
    if (!std::isfinite(lowest)) return false;
    if (lowest > 0) return now > config_.divergence * lowest;
    const double fallen = std::max(first - lowest, std::abs(lowest));
    return now > lowest + (config_.divergence - 1) * fallen;
  }

  // Returns std::nullopt if the test must stop.
  std::optional<double> loss_at(double lr) {
    if (config_.steps_each == 0) return loss_of_step(lr);
    kept_.restore();
    loader_.seek(start_);
    number_ = 0;
    for (int64_t step = 0; step < config_.steps_each; ++step) {
      if (!loss_of_step(lr)) return {};
    }
    return loss_of_step(lr);
  }

  // The loss of a batch, before the update.
  std::optional<double> loss_of_step(double lr) {
    std::optional<data::Batch> batch;
    do {
      // All processes that share steps stop after the same step.
      batch = loader_.next(is_shared_ ? nullptr : &stop_);
      if (!batch || (stop_.requested() && !is_shared_)) return {};
    } while (batch->size() == 0 && !is_shared_);
    // The first two steps are traced and compiled.
    const bool starts = taken_++ < 2;
    process_group_.begin(starts ? parallel::Section::kStart : parallel::Section::kStep, taken_);
    const StepRequests requests = {stop_.requested()};
    const StepResult result =
        step_.run(batch->by_role(), number_++, lr, /*count_correct=*/false, {},
                  {.rows = batch->whole_size, .own_rows = batch->size(), .requests = requests});
    if (result.requests[static_cast<size_t>(StepRequest::kStop)]) return {};
    return result.tally.loss();
  }

  const LrRangeTestConfig& config_;
  const StopRequest& stop_;
  data::LoaderState start_;
  data::DeviceLoader loader_;
  TrainStep step_;
  bool is_shared_;
  ProcessGroup process_group_;
  TensorSnapshot kept_;
  int64_t number_ = 0, taken_ = 0;
};

}  // namespace

LrRangeTest test_lr_range(const LrRangeTestParts& parts, const LrRangeTestConfig& config,
                          const StepConfig& step_config, const data::LoaderConfig& loader_config,
                          const std::function<void(const schedule::RangePoint&)>& on_point) {
  parts.model.set_training(true);
  return Test(parts, config, step_config, loader_config).run(on_point);
}

}  // namespace gallop::train
