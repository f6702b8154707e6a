#include "gallop/train/bucket_choice.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/base/clock.h"
#include "gallop/parallel/ddp.h"
#include "gallop/train/kept_tensors.h"
#include "gallop/train/trial_config.h"

namespace gallop::train {

namespace {

constexpr std::array<const char*, 4> kSizes = {parallel::kDefaultBucket, "1 MiB", "4 MiB",
                                               "100 MiB"};
constexpr double kWorthwhile = 0.95;
// A compiled step is recorded twice, and runs from its plan from then on.
constexpr int64_t kWarmUpSteps = 3, kLeastSteps = 5, kMostSteps = 30;
constexpr double kSeconds = 1;

// Sizes of all that a strategy works on: buckets that are divided alike have the same.
std::vector<int64_t> sizes_of(const parallel::Strategy& strategy) {
  std::vector<int64_t> sizes;
  for (const auto& [name, tensor] : strategy.state()) sizes.push_back(tensor.numel());
  return sizes;
}

double slowest(parallel::Collectives& collectives, double seconds) {
  std::vector<double> all(static_cast<size_t>(collectives.size()));
  all[static_cast<size_t>(collectives.rank())] = seconds;
  all = parallel::sum_over_all(collectives, all);
  return *std::max_element(all.begin(), all.end());
}

double step_seconds(const BucketTrial& trial, const std::string& size,
                    parallel::Collectives& collectives) {
  const auto strategy = trial.make_strategy(size);
  StepConfig config = for_trials(trial.step);
  config.strategy = strategy.get();
  TrainStep step(trial.model, trial.optimizer, config);
  std::vector<double> seconds;
  int64_t last = kWarmUpSteps + kMostSteps;
  for (int64_t number = 0; number < last; ++number) {
    const double start = monotonic_seconds();
    // A rate of 0: how long a step takes does not depend on it, and nothing diverges.
    step.run(trial.batch.input, trial.batch.target, number, 0, /*count_guesses=*/false, {},
             {.rows = trial.batch.whole_size});
    const double taken = monotonic_seconds() - start;
    if (number >= kWarmUpSteps) seconds.push_back(taken);
    if (number != kWarmUpSteps) continue;
    // All take as many.
    const double fit = kSeconds / slowest(collectives, taken);
    last = number + std::clamp(static_cast<int64_t>(fit), kLeastSteps, kMostSteps);
  }
  return slowest(collectives, median(seconds));
}

}  // namespace

std::vector<BucketTiming> time_buckets(const BucketTrial& trial,
                                       parallel::Collectives& collectives) {
  std::vector<BucketTiming> timings;
  std::set<std::vector<int64_t>> seen;
  for (const char* const size : kSizes) {
    if (seen.insert(sizes_of(*trial.make_strategy(size))).second) timings.push_back({size});
  }
  if (timings.size() == 1) return timings;
  KeptTensors kept(trial.model.parameters());
  for (const auto& list : {trial.model.buffers(), trial.optimizer.state()}) kept.keep(list);
  trial.model.set_training(true);
  for (BucketTiming& timing : timings) {
    timing.milliseconds = 1000 * step_seconds(trial, timing.size, collectives);
  }
  kept.put_back();
  return timings;
}

std::string pick_bucket(const std::vector<BucketTiming>& timings) {
  const auto fastest = std::min_element(
      timings.begin(), timings.end(),
      [](const auto& one, const auto& other) { return one.milliseconds < other.milliseconds; });
  const bool is_clear = fastest->milliseconds < kWorthwhile * timings.front().milliseconds;
  return is_clear ? fastest->size : timings.front().size;
}

std::string describe_choice(const std::vector<BucketTiming>& timings) {
  if (timings.size() == 1) {
    return fmt::format("{} (not measured: no other size divides the gradients in another way)",
                       timings.front().size);
  }
  std::vector<std::string> all;
  for (const auto& [size, milliseconds] : timings) {
    all.push_back(fmt::format("{} {:.1f} ms", size, milliseconds));
  }
  return fmt::format("{} (measured {})", pick_bucket(timings), fmt::join(all, ", "));
}

}  // namespace gallop::train
