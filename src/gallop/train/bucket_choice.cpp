#include "gallop/train/bucket_choice.h"

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "gallop/base/clock.h"
#include "gallop/parallel/ddp.h"
#include "gallop/train/step/step.h"
#include "gallop/train/tensor_snapshot.h"
#include "gallop/train/trial_config.h"

namespace gallop::train {

namespace {

constexpr std::array<const char*, 4> kSizes = {parallel::kDefaultBucket, "1 MiB", "4 MiB",
                                               "100 MiB"};
// A compiled step is traced twice, and runs from its plan from then on.
constexpr int64_t kWarmUpSteps = 3, kLeastSteps = 3, kMostSteps = 15;
constexpr double kSeconds = 0.4;  // Time of a round of one size.
// Each round traces its steps again.
constexpr int64_t kRounds = 2, kCloseRounds = 3, kMostRounds = 12;

// Sizes of a strategy's tensors, which are equal if buckets are divided in the same way.
std::vector<int64_t> sizes_of(const parallel::Strategy& strategy) {
  std::vector<int64_t> sizes;
  for (const auto& [name, tensor] : strategy.state()) sizes.push_back(tensor.numel());
  return sizes;
}

// The maximum cost over all processes, as the slowest makes the others wait.
MeasuredCost slowest(parallel::Collectives& collectives, const MeasuredCost& cost) {
  constexpr size_t kNumbers = 3;
  const auto rank = static_cast<size_t>(collectives.rank());
  std::vector<double> all(kNumbers * static_cast<size_t>(collectives.size()));
  all[kNumbers * rank] = cost.seconds;
  all[kNumbers * rank + 1] = cost.busy;
  all[kNumbers * rank + 2] = cost.spent;
  all = parallel::sum_over_all(collectives, all);
  MeasuredCost most;
  for (size_t i = 0; i < all.size(); i += kNumbers) {
    most.seconds = std::max(most.seconds, all[i]);
    most.busy = std::max(most.busy, all[i + 1]);
    most.spent = std::max(most.spent, all[i + 2]);
  }
  return most;
}

MeasuredCost measure_steps(const BucketTrial& trial, const std::string& size,
                           parallel::Collectives& collectives) {
  const CostMeter whole(/*works=*/false);
  const auto strategy = trial.make_strategy(size);
  StepConfig config = for_trials(trial.step);
  config.strategy = strategy.get();
  TrainStep step(trial.model, trial.optimizer, config);
  std::vector<double> seconds;
  std::optional<CostMeter> meter;
  int64_t last = kWarmUpSteps + kMostSteps;
  for (int64_t number = 0; number < last; ++number) {
    if (number == kWarmUpSteps) meter.emplace(/*works=*/false);
    const double start = monotonic_seconds();
    // A learning rate of 0, as it does not affect the time of a step and nothing diverges.
    step.run(trial.batch.by_role(), number, 0, /*count_correct=*/false, {},
             {.rows = trial.batch.whole_size, .own_rows = trial.batch.size()});
    const double taken = monotonic_seconds() - start;
    if (number >= kWarmUpSteps) seconds.push_back(taken);
    if (number != kWarmUpSteps) continue;
    // All processes run the same number of steps.
    const double fit = kSeconds / slowest(collectives, {.seconds = taken}).seconds;
    last = number + std::clamp(static_cast<int64_t>(fit), kLeastSteps, kMostSteps);
  }
  return slowest(
      collectives,
      {.seconds = median(seconds), .busy = meter->read().busy, .spent = whole.read().seconds});
}

}  // namespace

MeasuredChoice choose_bucket(const BucketTrial& trial, parallel::Collectives& collectives) {
  std::vector<std::string> sizes;
  std::set<std::vector<int64_t>> seen;
  for (const char* const size : kSizes) {
    if (seen.insert(sizes_of(*trial.make_strategy(size))).second) sizes.emplace_back(size);
  }
  if (sizes.size() == 1) return {.candidates = {{.name = sizes.front()}}};
  TensorSnapshot kept(trial.model.parameters());
  for (const auto& list : {trial.model.buffers(), trial.optimizer.state()}) kept.keep(list);
  trial.model.set_training(true);
  MeasuredChoice choice = choose_by_measuring(
      sizes, [&](size_t candidate) { return measure_steps(trial, sizes[candidate], collectives); },
      {.rounds = kRounds,
       .close_rounds = kCloseRounds,
       .most_rounds = kMostRounds,
       .uses = trial.uses});
  kept.restore();
  return choice;
}

std::string describe_bucket(const MeasuredChoice& choice) {
  const std::string& size = choice.candidates[choice.chosen].name;
  if (choice.rounds == 0) {
    return fmt::format("{} (not measured: no other size divides the gradients in another way)",
                       size);
  }
  return fmt::format("{} (measured {})", size, choice.times());
}

}  // namespace gallop::train
