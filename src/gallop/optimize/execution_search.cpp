#include "gallop/optimize/execution_search.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/base/error.h"

namespace gallop::optimize {

namespace {

// A retry of a rejected change needs such a predicted speed-up.
constexpr double kRetry = 1.05;

std::string key_of(const std::vector<std::string>& options) {
  std::vector<std::string> sorted = options;
  std::sort(sorted.begin(), sorted.end());
  return fmt::format("{}", fmt::join(sorted, " "));
}

void judge(Trial& trial, const SearchConfig& config) {
  const Comparison& found = *trial.comparison;
  trial.verdict = Verdict::kRejected;
  if (!found.failure.empty()) {
    trial.verdict = Verdict::kFailed;
    trial.reason = found.failure;
    return;
  }
  if (config.goal == Goal::kEnergy && !found.energy_gain) {
    throw UsageError(
        "the energy of these trainings could not be measured: neither energy nor CPU time is "
        "readable; choose another --goal");
  }
  trial.gain = gain_of(found, config.goal);
  const bool is_slower_than_it_saves =
      config.goal == Goal::kMemory && found.speedup.value * trial.gain->value < 1;
  if (found.loss_change && found.loss_change->low > config.tolerated_loss) {
    trial.reason = fmt::format("the loss rises by {:.1f} % over the same steps",
                               100 * found.loss_change->value);
  } else if (trial.gain->high < 1) {
    trial.reason = "worse";
  } else if (trial.gain->low < config.worthwhile) {
    trial.reason = trial.gain->value < config.worthwhile ? "no gain" : "no significant gain";
  } else if (is_slower_than_it_saves) {
    trial.reason =
        fmt::format("costs more time ({:.2f}x) than it saves memory", 1 / found.speedup.value);
  } else {
    trial.verdict = Verdict::kKept;
  }
}

// By speed.
bool try_change(SearchState& state, const Change& change) {
  Trial trial{.change = change};
  const double before = state.experiments.seconds();
  trial.comparison = state.compare(state.options(), with(state.options(), change.options));
  trial.seconds = state.experiments.seconds() - before;
  judge(trial, state.config);
  const bool is_kept = trial.verdict == Verdict::kKept;
  if (is_kept) state.keep(change);
  state.add(std::move(trial));
  return is_kept;
}

}  // namespace

void try_execution(SearchState& state) {
  std::vector<Prediction> predictions = state.experiments.predict(state.options());
  // By change: the options that it was tried with.
  std::map<std::string, std::set<std::string>> tried;
  while (true) {
    std::optional<Change> next;
    for (const Change& change : execution_changes(state.settings, predictions, state.config.goal)) {
      std::set<std::string>& bases = tried[key_of(change.options)];
      const bool may_help = change.predicted && change.predicted->low > kRetry;
      if (!bases.empty() && (!may_help || bases.size() > 1)) continue;
      if (!bases.insert(key_of(state.options())).second) continue;
      next = change;
      break;
    }
    if (!next) return;
    const double share = state.config.goal == Goal::kTimeToAccuracy ? kExecutionShare : kLastShare;
    if (state.is_over(share)) {
      state.add({.change = *next, .reason = "the budget is used up"});
      continue;
    }
    if (try_change(state, *next)) {
      state.settings = state.experiments.settings(state.options());
      if (!state.is_over(share)) predictions = state.experiments.predict(state.options());
    }
  }
}

}  // namespace gallop::optimize
