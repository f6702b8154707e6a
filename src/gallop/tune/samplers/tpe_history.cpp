#include "gallop/tune/samplers/tpe_history.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace gallop::tune {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr size_t kMostGood = 25;

enum Group { kFeasible, kPruned, kInfeasible };

double or_infinity(double loss) { return std::isnan(loss) ? kInfinity : loss; }

/// The number of finished trials that are good.
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
  good_ = best();
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

bool TpeHistory::is_in_fronts(const Rank& rank) const {
  return objectives_ > 1 && rank.group == kFeasible;
}

void TpeHistory::rank(const Trial& trial) {
  std::optional<Rank>& rank = entry(trial.number).rank;
  if (rank && is_in_fronts(*rank)) {
    fronts_.erase(trial.number);
  } else if (rank) {
    ranked_.erase(*rank);
  }
  rank.reset();
  if (trial.state != TrialState::kComplete && trial.state != TrialState::kPruned) return;
  rank = rank_of(trial);
  if (is_in_fronts(*rank)) {
    fronts_.insert(trial.number, trial.losses);
  } else {
    ranked_.insert(*rank);
  }
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

std::set<int64_t> TpeHistory::best() {
  const size_t count = good_of(finished(), objectives_);
  std::set<int64_t> good;
  for (const DominationFronts::Front& front : fronts_.fronts()) {
    if (good.size() == count) break;
    const std::vector<int64_t> trials = best_of(front, count - good.size());
    good.insert(trials.begin(), trials.end());
  }
  for (auto next = ranked_.begin(); next != ranked_.end() && good.size() < count; ++next) {
    good.insert(next->trial);
  }
  return good;
}

std::vector<int64_t> TpeHistory::best_of(const DominationFronts::Front& front, size_t count) {
  if (front.rows.size() <= count) return front.rows;
  std::vector<size_t> order(front.rows.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto place = [&](size_t index) {
    return std::pair(front.losses[index * objectives_], front.rows[index]);
  };
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return place(a) < place(b); });
  LossRows rows;
  for (const size_t index : order) {
    const double* const losses = &front.losses[index * objectives_];
    rows.emplace_back(losses, losses + objectives_);
  }
  std::vector<int64_t> best;
  for (const size_t index : select_by_hypervolume(rows, count, reference_point(rows), selection_)) {
    best.push_back(front.rows[order[index]]);
  }
  return best;
}

}  // namespace gallop::tune
