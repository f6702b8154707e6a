#include "gallop/tune/samplers/generations.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gallop::tune {

namespace {

const Trial& trial_of(const Study& study, int64_t number) {
  return study.trials()[static_cast<size_t>(number)];
}

}  // namespace

bool Generations::counts(const Trial& trial) const {
  if (trial.state == TrialState::kPruned) return pruned_ && !trial.reports.empty();
  return trial.state == TrialState::kComplete;
}

bool Generations::is_valid(const Study& study) const {
  const auto stands = [&](int64_t number) {
    const auto counted = counted_.find(number);
    if (counted == counted_.end()) return true;
    const Trial& trial = trial_of(study, number);
    return trial.is_finished() && trial.last_end == counted->second;
  };
  const auto& ends = study.finished();
  return std::all_of(study.running().begin(), study.running().end(), stands) &&
         std::all_of(study.waiting().begin(), study.waiting().end(), stands) &&
         std::all_of(ends.begin() + static_cast<std::ptrdiff_t>(read_), ends.end(), stands);
}

const Trial* Generations::next(const Study& study) {
  const auto& ends = study.finished();
  while (read_ < static_cast<int64_t>(ends.size())) {
    const Trial& trial = trial_of(study, ends[static_cast<size_t>(read_++)]);
    if (trial.last_end != read_ - 1 || !counts(trial)) continue;
    counted_.emplace(trial.number, trial.last_end);
    return &trial;
  }
  return nullptr;
}

size_t Generations::generation_of(const Trial& trial) const {
  const auto after = std::upper_bound(begins_.begin(), begins_.end(), trial.known_ends);
  return static_cast<size_t>(after - begins_.begin());
}

double loss_of(const Trial& trial) {
  const double loss =
      trial.state == TrialState::kPruned ? trial.reports.back().loss : trial.losses[0];
  return std::isnan(loss) ? std::numeric_limits<double>::infinity() : loss;
}

}  // namespace gallop::tune
