#include "gallop/app/step_trials.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <ATen/Parallel.h>

#include "gallop/advise/advice.h"
#include "gallop/app/optimize/child_experiments.h"
#include "gallop/app/session.h"
#include "gallop/base/error.h"
#include "gallop/base/temporary_folder.h"
#include "gallop/train/measured_choice.h"
#include "gallop/train/out_of_memory.h"
#include "gallop/train/step/step.h"

namespace gallop::app {

namespace {

// Steps in which graphs are recorded and compiled, and one that fills caches.
constexpr int kWarmUp = 3;
// A speed-up of the loader that is worth advice, and the ratio of the bounds of a clear one.
constexpr double kWorthwhile = 1.05, kCertain = 1.2;

// A training whose step is repeated on one batch. Weights do not change, as the learning rate is 0.
class RepeatedStep {
 public:
  explicit RepeatedStep(ResolvedRecipe resolved)
      : session_(std::move(resolved)),
        threads_(at::get_num_threads()),
        batch_(session_.first_batch(session_.recipe().data.batch_size)),
        step_(session_.model(), session_.optimizer(), session_.step_config()) {
    for (const train::ParameterSchedule& one : session_.scheduled()) values_.push_back(one.at(0));
    session_.model().set_training(true);
    for (int i = 0; i < kWarmUp; ++i) run();
  }

  train::MeasuredCost time() {
    at::set_num_threads(threads_);
    const train::CostMeter meter(session_.device().is_cpu());
    run();
    return meter.read();
  }

 private:
  void run() { step_.run(batch_.by_role(), number_++, /*lr=*/0, /*count_correct=*/false, values_); }

  Session session_;
  int threads_;
  data::Batch batch_;
  train::TrainStep step_;
  std::vector<double> values_;
  int64_t number_ = 0;
};

// Seconds of the shortest of some steps.
double shortest(RepeatedStep& step) {
  constexpr int kSteps = 5;
  double least = step.time().seconds;
  for (int i = 1; i < kSteps; ++i) least = std::min(least, step.time().seconds);
  return least;
}

std::unique_ptr<RepeatedStep> build(const Registries& registries, const std::string& recipe,
                                    const std::vector<Override>& overrides) {
  return std::make_unique<RepeatedStep>(load_recipe(registries, recipe, overrides));
}

}  // namespace

void time_options(const Registries& registries, const std::string& recipe,
                  const std::vector<Override>& resolved, advise::Facts& facts,
                  const StopRequest& stop) {
  const std::vector<std::string> options = advise::options_to_try(facts);
  const bool wants_own = advise::wants_step_alone(facts);
  if ((options.empty() && !wants_own) || stop.requested()) return;
  const int threads = at::get_num_threads();
  const auto own = build(registries, recipe, resolved);
  if (wants_own) facts.step_alone = shortest(*own);
  for (const std::string& option : options) {
    if (stop.requested()) break;
    std::vector<std::string> given = {option};
    std::vector<Override> changed = resolved;
    for (const Override& one : take_overrides(given)) changed.push_back(one);
    try {
      const auto other = build(registries, recipe, changed);
      const auto choice = train::choose_by_measuring(
          {"as it is", option},
          [&](size_t candidate) { return candidate == 0 ? own->time() : other->time(); },
          {.rounds = 5, .most_seconds = 5, .hopeless = 3});
      facts.trials.push_back({.options = option,
                              .seconds = choice.candidates[1].seconds,
                              .seconds_as_is = choice.candidates[0].seconds,
                              .is_uncertain = choice.is_busy});
    } catch (const UsageError&) {
      // The options do not go together.
    } catch (const train::StepDoesNotFit&) {
      // Neither is this an option.
    }
  }
  at::set_num_threads(threads);
}

void time_loader_options(const std::string& recipe, const std::vector<Override>& resolved,
                         advise::Facts& facts, const StopRequest& stop) {
  const std::vector<std::string> options = advise::loader_options_to_try(facts);
  if (options.empty() || stop.requested()) return;
  const TemporaryFolder folder(fs::temp_directory_path(), "gallop-profile-");
  ChildExperiments children({.recipe = recipe,
                             .options = options_of(resolved),
                             .metric = {},
                             .folder = folder.path(),
                             .worthwhile = kWorthwhile},
                            stop, [](const std::string&) {});
  for (const std::string& option : options) {
    try {
      const optimize::Comparison found = children.compare({}, {option});
      if (!found.failure.empty()) continue;
      const auto batch = static_cast<double>(facts.settings.batch_size);
      facts.trials.push_back(
          {.options = option,
           .seconds = batch / (found.base.samples_per_second * found.speedup.value),
           .seconds_as_is = batch / found.base.samples_per_second,
           .is_uncertain = found.speedup.high > kCertain * found.speedup.low,
           .is_whole = true});
    } catch (const optimize::Stopped&) {
      return;
    } catch (const DataError&) {
      return;  // This training cannot be measured: the computed gain stays.
    }
  }
}

}  // namespace gallop::app
