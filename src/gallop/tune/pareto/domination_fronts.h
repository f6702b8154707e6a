#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gallop::tune {

/// Rows of losses by domination_ranks(), kept as rows come one by one.
///
/// The first front that has room for a new row, as none there dominates it, is found by halving:
/// with a row that dominates it there is one in each front before. What it dominates there goes to
/// the next front, where the same happens (Li et al., "Efficient nondomination level update method
/// for steady-state evolutionary multiobjective optimization", 2014; Yakupov and Buzdalov,
/// "Incremental non-dominated sorting with O(N) insertion for the two-dimensional case", 2015).
/// Where rows have gone, or many have come, all are ranked again.
class DominationFronts {
 public:
  /// Rows of one rank, in no order that means something.
  struct Front {
    std::vector<int64_t> rows;
    std::vector<double> losses;  ///< Of all of them, row after row; infinite in place of NaN.
  };

  explicit DominationFronts(size_t objectives) : objectives_(objectives) {}

  size_t size() const { return size_; }

  /// Adds a row, by a number that no other has.
  void insert(int64_t row, const std::vector<double>& losses);
  /// Takes a row away that is there.
  void erase(int64_t row);

  /// By rank.
  const std::vector<Front>& fronts();

 private:
  void rank_anew();
  void add(const Front& rows, size_t index);
  bool dominates_some(const Front& front, const double* losses) const;
  Front take_dominated(Front& from, const Front& by) const;

  size_t objectives_;
  size_t size_ = 0;
  std::vector<Front> fronts_;  // Without the last changes:
  Front added_;
  std::vector<int64_t> removed_;
};

}  // namespace gallop::tune
