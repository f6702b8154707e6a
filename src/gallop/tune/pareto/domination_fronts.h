#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gallop::tune {

/// The fronts of rows of losses by domination_ranks(), maintained incrementally.
///
/// The front of a new row, the first one where no row dominates it, is found by binary search: if a
/// row of a front dominates it, one in each earlier front does. Rows of that front that the new row
/// dominates move to the next front, recursively (Li et al., "Efficient nondomination level update
/// method for steady-state evolutionary multiobjective optimization", 2014; Yakupov and Buzdalov,
/// "Incremental non-dominated sorting with O(N) insertion for the two-dimensional case", 2015).
/// After removals, or many insertions, all rows are ranked from scratch.
class DominationFronts {
 public:
  /// The rows of one rank, in unspecified order.
  struct Front {
    std::vector<int64_t> rows;
    std::vector<double> losses;  ///< Of all rows, row-major; NaN replaced by infinity.
  };

  explicit DominationFronts(size_t objectives) : objectives_(objectives) {}

  size_t size() const { return size_; }

  /// Inserts a row with a unique number.
  void insert(int64_t row, const std::vector<double>& losses);
  /// Removes a row, which must be present.
  void erase(int64_t row);

  /// The fronts, ordered by rank.
  const std::vector<Front>& fronts();

 private:
  void rank_all();
  void add(const Front& rows, size_t index);
  bool dominates_some(const Front& front, const double* losses) const;
  Front take_dominated(Front& from, const Front& by) const;

  size_t objectives_;
  size_t size_ = 0;
  std::vector<Front> fronts_;  // Without the pending changes:
  Front added_;
  std::vector<int64_t> removed_;
};

}  // namespace gallop::tune
