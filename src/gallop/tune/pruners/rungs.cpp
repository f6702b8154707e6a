#include "gallop/tune/pruners/rungs.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace gallop::tune {

int64_t Rungs::step(size_t rung) const {
  if (rung < firsts_.size()) return firsts_[rung];
  int64_t step = firsts_.back();
  for (size_t last = firsts_.size() - 1; last < rung; ++last) {
    if (step > std::numeric_limits<int64_t>::max() / factor_) {
      return std::numeric_limits<int64_t>::max();
    }
    step *= factor_;
  }
  return step;
}

void Rungs::follow(const Trial& trial) {
  Followed& followed = trials_[trial.number];
  if (followed.rewinds != trial.rewinds) forget(trial, followed);
  for (; followed.reports < trial.reports.size(); ++followed.reports) pass(trial, followed);
}

void Rungs::pass(const Trial& trial, Followed& followed) {
  const Report& report = trial.reports[followed.reports];
  if (std::isnan(report.loss)) return;
  // Rungs beyond the range of int64_t cannot be passed.
  const int64_t reached = std::min(report.step, std::numeric_limits<int64_t>::max() - 1);
  while (reached >= step(followed.passages.size())) {
    const size_t rung = followed.passages.size();
    followed.passages.push_back({followed.reports, report.loss});
    if (rung == rungs_.size()) rungs_.emplace_back();
    const Entry entry{report.loss, trial.number};
    auto& entries = rungs_[rung];
    entries.insert(std::upper_bound(entries.begin(), entries.end(), entry), entry);
  }
}

void Rungs::forget(const Trial& trial, Followed& followed) {
  for (size_t rung = 0; rung < followed.passages.size(); ++rung) {
    auto& entries = rungs_[rung];
    const Entry entry{followed.passages[rung].loss, trial.number};
    entries.erase(std::lower_bound(entries.begin(), entries.end(), entry));
  }
  followed = {.rewinds = trial.rewinds};
}

bool Rungs::ends(const Trial& trial, int64_t bootstrap_count) const {
  const auto& passages = this->passages(trial.number);
  const Report& last = trial.reports.back();
  if (std::isnan(last.loss)) return last.step >= step(passages.size());
  for (size_t rung = first_of_last_report(trial); rung < passages.size(); ++rung) {
    const auto& entries = rungs_[rung];
    if (entries.size() <= static_cast<size_t>(bootstrap_count)) return true;
    const size_t kept = std::max<size_t>(entries.size() / static_cast<size_t>(factor_), 1);
    if (last.loss > entries[kept - 1].first) return true;
  }
  return false;
}

size_t Rungs::first_of_last_report(const Trial& trial) const {
  const auto& passages = this->passages(trial.number);
  size_t rung = passages.size();
  while (rung > 0 && passages[rung - 1].report + 1 == trial.reports.size()) --rung;
  return rung;
}

void Brackets::follow(const Study& study) {
  changes_.each(study, [&](const Trial& trial) { rungs_[index(trial)].follow(trial); });
}

size_t Brackets::index(const Trial& trial) const {
  return std::min(static_cast<size_t>(trial.bracket), rungs_.size() - 1);
}

std::optional<int64_t> first_complete_length(const Study& study) {
  for (const int64_t number : study.finished()) {
    const Trial& trial = study.trials()[static_cast<size_t>(number)];
    if (trial.state == TrialState::kComplete && !trial.reports.empty()) {
      return trial.reports.back().step;
    }
  }
  return std::nullopt;
}

}  // namespace gallop::tune
