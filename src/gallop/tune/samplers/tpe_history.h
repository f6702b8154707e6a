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

/// Trials, divided into a few good ones and the rest: the tenth of those that
/// are finished that is best (with one objective at most 25).
///
/// Complete trials within their limits come first, by their loss or, with several objectives, by
/// how many layers dominate them and then by the hypervolume that they add; then pruned ones, the
/// later the better; then those beyond a limit, by how much.
class TpeHistory {
 public:
  enum class Side : uint8_t { kNone, kGood, kRest };

  /// `counts_running`: whether trials that wait or run are among the rest.
  TpeHistory(size_t objectives, bool counts_running)
      : objectives_(objectives), counts_running_(counts_running), fronts_(objectives) {}

  /// How many are complete or pruned.
  size_t finished() const { return fronts_.size() + ranked_.size(); }

  /// A trial that has changed since the last update.
  void change(int64_t trial) { changed_.insert(trial); }

  struct Move {
    int64_t trial;
    Side from, to;
  };
  /// Takes in what has changed. Those of `also_good` that are among its finished trials are good,
  /// too.
  std::vector<Move> update(const Study& study, const std::set<int64_t>& also_good = {});

  const std::set<int64_t>& good() const { return good_; }

 private:
  /// What is smaller is better.
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
  DominationFronts fronts_;  // With several objectives, what is complete and within its limits.
  std::set<Rank> ranked_;    // All others.
  GreedySelection selection_;
  std::set<int64_t> changed_, good_;
  std::vector<Entry> entries_;  // By trial.
};

}  // namespace gallop::tune
