#include "gallop/tune/samplers/tpe_history.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "gallop/tune/pareto.h"

namespace gallop::tune {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr size_t kMostGood = 25;

enum Group { kFeasible, kPruned, kInfeasible };

double or_infinity(double loss) { return std::isnan(loss) ? kInfinity : loss; }

/// How many of the finished trials are good.
size_t good_of(size_t finished, size_t objectives) {
  const size_t tenth = (finished + 9) / 10;
  return objectives > 1 ? tenth : std::min(tenth, kMostGood);
}

}  // namespace

std::vector<TpeHistory::Move> TpeHistory::update(const Study& study,
                                                 const std::set<int64_t>& also_good) {
  if (changed_.empty() && also_good.empty()) return {};
  for (const int64_t trial : changed_) rank(study.trials()[static_cast<size_t>(trial)]);
  std::set<int64_t> touched = std::move(changed_);
  changed_.clear();
  touched.insert(good_.begin(), good_.end());
  good_ = best(study);
  for (const int64_t trial : also_good) {
    if (entry(trial).rank) good_.insert(trial);
  }
  touched.insert(good_.begin(), good_.end());
  std::vector<Move> moves;
  for (const int64_t trial : touched) {
    const TrialState state = study.trials()[static_cast<size_t>(trial)].state;
    const bool is_open = state == TrialState::kWaiting || state == TrialState::kRunning;
    const bool counts = is_open ? counts_running_ : state != TrialState::kFailed;
    const Side now = !counts ? Side::kNone : good_.contains(trial) ? Side::kGood : Side::kRest;
    Side& before = entry(trial).side;
    if (now != before) moves.push_back({trial, before, now});
    before = now;
  }
  return moves;
}

TpeHistory::Entry& TpeHistory::entry(int64_t trial) {
  const auto index = static_cast<size_t>(trial);
  if (index >= entries_.size()) entries_.resize(index + 1);
  return entries_[index];
}

void TpeHistory::rank(const Trial& trial) {
  std::optional<Rank>& rank = entry(trial.number).rank;
  if (rank) ranked_.erase(*rank);
  rank.reset();
  if (trial.state != TrialState::kComplete && trial.state != TrialState::kPruned) return;
  rank = rank_of(trial);
  ranked_.insert(*rank);
}

TpeHistory::Rank TpeHistory::rank_of(const Trial& trial) {
  const double violation = total_violation(trial);
  if (violation > 0) return {kInfeasible, violation, 0, trial.number};
  if (trial.state == TrialState::kComplete) {
    return {kFeasible, or_infinity(trial.losses[0]), 0, trial.number};
  }
  if (trial.reports.empty()) return {kPruned, 1, 0, trial.number};
  const Report& last = trial.reports.back();
  return {kPruned, -static_cast<double>(last.step), or_infinity(last.loss), trial.number};
}

std::set<int64_t> TpeHistory::best(const Study& study) const {
  const size_t count = good_of(finished(), objectives_);
  std::set<int64_t> good;
  auto next = ranked_.begin();
  if (objectives_ > 1) {
    LossRows losses;
    std::vector<int64_t> trials;
    for (; next != ranked_.end() && next->group == kFeasible; ++next) {
      trials.push_back(next->trial);
      losses.push_back(study.trials()[static_cast<size_t>(next->trial)].losses);
    }
    for (const size_t index : best_rows(losses, count)) good.insert(trials[index]);
  }
  for (; next != ranked_.end() && good.size() < count; ++next) good.insert(next->trial);
  return good;
}

}  // namespace gallop::tune
