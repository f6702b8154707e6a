#include "gallop/optimize/search.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "gallop/base/error.h"
#include "gallop/optimize/execution_search.h"
#include "gallop/optimize/search_state.h"
#include "gallop/optimize/training_search.h"

namespace gallop::optimize {

namespace {

bool training_fits(const SearchState& state) {
  return state.seconds_of_training(state.report.best_runs->epochs) < state.left();
}

double energy_gain(const Comparison& found) {
  return found.energy_gain ? found.energy_gain->value : found.speedup.value;
}

// Whether the best recipe is as good without this change.
bool ablate_execution(SearchState& state, size_t index) {
  const Comparison found = state.compare(state.options(index), state.options());
  if (!found.failure.empty()) return false;
  const Estimate worth = gain_of(found, state.config.goal);
  if (worth.high < state.config.worthwhile) return true;
  state.report.ablations.push_back(
      {.change = state.kept[index].change.name, .worth = worth, .energy = energy_gain(found)});
  return false;
}

// The recipe without the change may need a longer training to reach the target.
bool ablate_training(SearchState& state, size_t index) {
  const Trainings& best = *state.report.best_runs;
  Ablation ablation{.change = state.kept[index].change.name, .is_least = true};
  double speedup = 1, energy = 1;
  // Its speed was another one.
  if (state.report.trials[state.kept[index].trial].comparison) {
    const Comparison found = state.compare(state.options(index), state.options());
    if (!found.failure.empty()) return false;
    speedup = found.speedup.value;
    energy = energy_gain(found);
  }
  for (double epochs = best.epochs; ablation.is_least;
       epochs = std::min(state.report.plain.epochs, epochs / kShorter)) {
    const TrainingResult run =
        state.experiments.train(state.with_length(state.options(index), epochs), 1);
    if (!run.failure.empty()) return false;
    const auto reached = run.epochs_to(*state.report.target, state.settings.higher_is_better);
    const double longer = reached.value_or(epochs) / best.epochs_to_target;
    const double worth = speedup * longer;
    ablation.worth = {.value = worth, .low = worth, .high = worth, .rounds = 1};
    ablation.energy = energy * longer;
    if (!ablation.metric) ablation.metric = run.metric();
    ablation.is_least = !reached;
    if (epochs >= state.report.plain.epochs ||
        state.seconds_of_training(epochs / kShorter) > state.left())
      break;
  }
  state.report.ablations.push_back(std::move(ablation));
  return false;
}

// Leaves out one change at a time, and reverts what turns out to be useless.
void ablate(SearchState& state) {
  for (size_t i = 0; i < state.kept.size();) {
    const Change change = state.kept[i].change;
    const bool is_execution = change.effect != Effect::kTraining;
    const bool fits =
        is_execution ? !state.is_over(1) : state.report.best_runs && training_fits(state);
    if (!fits || change.subject == "length") {
      ++i;
      continue;
    }
    const bool is_useless = is_execution ? ablate_execution(state, i) : ablate_training(state, i);
    if (!is_useless) {
      ++i;
      continue;
    }
    // Also those that it has replaced.
    for (Trial& trial : state.report.trials) {
      if (trial.verdict != Verdict::kKept || trial.change.subject != change.subject) continue;
      trial.verdict = Verdict::kReverted;
      trial.reason = "the best recipe is as good without it";
    }
    state.kept.erase(state.kept.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace

Report search(Experiments& experiments, const SearchConfig& config, const Progress& progress) {
  SearchState state{.experiments = experiments, .config = config, .progress = progress};
  Report& report = state.report;
  report = {.goal = config.goal,
            .recipe = config.recipe,
            .given = config.given,
            .budget_seconds = config.budget_seconds,
            .price_per_hour = config.price_per_hour};
  report.plain = experiments.settings(config.given);
  state.settings = report.plain;
  try_execution(state);
  if (config.goal == Goal::kTimeToAccuracy) try_training(state);
  if (config.ablate) ablate(state);
  report.options = state.options();
  if (!state.kept.empty()) {
    report.total = state.compare(config.given, report.options);
    if (!report.total->failure.empty()) throw DataError(report.total->failure);
  }
  report.best = experiments.settings(report.options);
  report.seconds = experiments.seconds();
  return std::move(report);
}

}  // namespace gallop::optimize
