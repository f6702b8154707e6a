#include "gallop/tune/importance/history.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/tune/importance/importance.h"

namespace gallop::tune {

std::vector<const Trial*> judged_trials(const Study& study, std::optional<size_t> objective) {
  const auto is_judged = [&](const Trial& trial) {
    if (trial.state != TrialState::kComplete) return false;
    if (objective) return std::isfinite(trial.losses[*objective]);
    return std::all_of(trial.losses.begin(), trial.losses.end(),
                       [](double loss) { return std::isfinite(loss); });
  };
  std::vector<const Trial*> trials;
  for (const Trial& trial : study.trials()) {
    if (is_judged(trial)) trials.push_back(&trial);
  }
  return trials;
}

std::string no_importance_reason(const Study& study, std::optional<size_t> objective) {
  const auto trials = judged_trials(study, objective);
  if (trials.size() < 2) return "at least two complete trials are required";
  const size_t first = objective.value_or(0);
  const size_t last = objective ? first + 1 : study.objectives();
  const auto is_as_the_first = [&](const Trial* trial) {
    const auto& losses = trials.front()->losses;
    return std::equal(trial->losses.begin() + static_cast<std::ptrdiff_t>(first),
                      trial->losses.begin() + static_cast<std::ptrdiff_t>(last),
                      losses.begin() + static_cast<std::ptrdiff_t>(first));
  };
  if (!std::all_of(trials.begin(), trials.end(), is_as_the_first)) return {};
  std::vector<std::string> metrics;
  for (size_t i = first; i < last; ++i) {
    metrics.push_back(printable(study.settings().objectives[i].metric));
  }
  return fmt::format("all {} complete trials have the same {}; no parameter is important",
                     trials.size(), join_names(metrics, "and"));
}

std::vector<double> as_shares(std::vector<double> values) {
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  const double equal = 1 / static_cast<double>(values.size());
  for (double& value : values) value = sum > 0 ? value / sum : equal;
  return values;
}

void check_objective(const Study& study, std::optional<size_t> objective) {
  if (objective && *objective >= study.objectives()) {
    throw UsageError(fmt::format("importance: objective {} of a study with {}", *objective + 1,
                                 study.objectives()));
  }
}

bool is_variable(const Parameter& parameter) {
  if (const Interval* const interval = parameter.interval()) return count(*interval) != 1;
  return parameter.choices()->values.size() > 1;
}

}  // namespace gallop::tune
