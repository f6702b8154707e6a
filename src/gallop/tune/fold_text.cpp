#include "gallop/tune/fold_text.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include <fmt/format.h>

#include "gallop/base/text.h"
#include "gallop/tune/study_text.h"
#include "gallop/tune/trial_args.h"

namespace gallop::tune {

namespace {

constexpr const char* kFold = "data.fold";
constexpr size_t kShown = 10;  // Points of the other parameters.

// "optimizer.lr=0.1 model.depth=14", without the fold.
std::string other_parameters(const Study& study, const Trial& trial) {
  std::string text;
  for (const auto& [name, word] : parameter_args(study.space(), trial.point)) {
    if (name != kFold) text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, word);
  }
  return text;
}

bool has_fold(const Study& study) {
  const auto& parameters = study.space().parameters();
  return std::any_of(parameters.begin(), parameters.end(),
                     [](const auto& parameter) { return parameter.name == kFold; });
}

}  // namespace

std::string folds_text(const Study& study) {
  if (!has_fold(study)) return {};
  std::map<std::string, std::vector<double>> losses;
  for (const Trial& trial : study.trials()) {
    if (trial.state != TrialState::kComplete || trial.losses.empty()) continue;
    losses[other_parameters(study, trial)].push_back(trial.losses[0]);
  }
  struct Line {
    double loss = 0;
    std::string text;
  };
  const Objective& objective = study.settings().objectives[0];
  std::vector<Line> lines;
  for (const auto& [parameters, values] : losses) {
    if (values.size() < 2) continue;
    const auto count = static_cast<double>(values.size());
    double mean = 0, squares = 0;
    for (const double value : values) mean += value / count;
    for (const double value : values) squares += (value - mean) * (value - mean);
    lines.push_back(
        {mean, fmt::format("{} {:.4g} ± {:.2g} over {} folds{}{}\n", printable(objective.metric),
                           objective.signed_value(mean), std::sqrt(squares / (count - 1)),
                           values.size(), parameters.empty() ? "" : ": ", printable(parameters))});
  }
  std::stable_sort(lines.begin(), lines.end(),
                   [](const Line& a, const Line& b) { return a.loss < b.loss; });
  std::string text;
  for (size_t i = 0; i < std::min(kShown, lines.size()); ++i) text += lines[i].text;
  if (lines.size() > kShown) text += fmt::format("and {} more\n", lines.size() - kShown);
  return text;
}

}  // namespace gallop::tune
