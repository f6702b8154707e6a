#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <tuple>
#include <vector>

#include "gallop/tune/pareto/domination_fronts.h"
#include "gallop/tune/pareto/greedy_selection.h"
#include "gallop/tune/study.h"

namespace gallop::tune {

/// Splits trials into a few good ones, the best tenth of those that are finished (with one
/// objective at most 25), and the rest.
///
/// Order: complete trials within their limits, by their loss or, with several objectives, by
/// non-domination rank and then by hypervolume contribution; then pruned ones, later first; then
/// infeasible ones by their violation.
class TpeHistory {
 public:
  enum class Side : uint8_t { kNone, kGood, kRest };

  /// `counts_running`: whether waiting and running trials are among the rest.
  TpeHistory(size_t objectives, bool counts_running)
      : objectives_(objectives), counts_running_(counts_running), fronts_(objectives) {}

  /// The number of complete or pruned trials.
  size_t finished() const { return fronts_.size() + ranked_.size(); }

  /// Registers a trial that has changed since the last update.
  void change(int64_t trial) { changed_.insert(trial); }

  struct Move {
    int64_t trial;
    Side from, to;
  };
  /// Processes the registered changes. Finished trials in `also_good` are good as well.
  std::vector<Move> update(const Study& study, const std::set<int64_t>& also_good = {});

  const std::set<int64_t>& good() const { return good_; }

 private:
  /// Sort key, ascending.
  struct Rank {
    int group;
    double first, second;
    int64_t trial;
    bool operator<(const Rank& other) const {
      return std::tie(group, first, second, trial) <
             std::tie(other.group, other.first, other.second, other.trial);
    }
  };

  struct Entry {
    Side side = Side::kNone;
    std::optional<Rank> rank{};
  };

  static Rank rank_of(const Trial& trial);
  bool is_in_fronts(const Rank& rank) const;
  void rank(const Trial& trial);
  Entry& entry(int64_t trial);
  std::set<int64_t> best();
  std::vector<int64_t> best_of(const DominationFronts::Front& front, size_t count);

  size_t objectives_;
  bool counts_running_;
  DominationFronts fronts_;  // With several objectives: complete, feasible trials.
  std::set<Rank> ranked_;    // All other trials.
  GreedySelection selection_;
  std::set<int64_t> changed_, good_;
  std::vector<Entry> entries_;  // By trial.
};

}  // namespace gallop::tune
