#pragma once

#include <cstddef>
#include <vector>

#include "gallop/tune/pareto/pareto.h"

namespace gallop::tune {

/// The selected rows, and the hypervolume that each adds to those selected before it.
struct GreedySteps {
  std::vector<size_t> rows;
  std::vector<double> shares;
  /// Bound on the difference of a share from added_volume(), or infinite.
  std::vector<double> errors;
};

/// The implementation of select_by_hypervolume() for at least two objectives. `rows` are
/// lexicographically sorted, distinct and mutually non-dominated; the reference is finite; `count`
/// is at most the number of rows.
///
/// Lazy greedy: contributions only shrink as more rows are selected, so that a row whose
/// contribution is up to date and above the outdated ones of all others is next. With three
/// objectives, contributions are computed by BoxCover; if two are within its error, added_volume()
/// decides, so that the selection equals that by added_volume() alone.
GreedySteps select_greedily(const LossRows& rows, size_t count,
                            const std::vector<double>& reference);

/// The incremental version, for rows that differ little from the last call's. The selection is
/// redone from the first step that a removed row took part in or an added row could change; with
/// three objectives, one BoxCover decides this for an added row.
class GreedySelection {
 public:
  std::vector<size_t> select(const LossRows& rows, size_t count,
                             const std::vector<double>& reference);

 private:
  /// The number of last steps that stay the same for these rows; if fewer than `count` are
  /// unchanged, a lower bound.
  size_t unchanged_steps(const LossRows& rows, size_t count) const;
  /// The number of last steps before the first one in which this row could be selected.
  size_t steps_without(const std::vector<double>& row) const;

  LossRows rows_;
  std::vector<double> reference_;
  GreedySteps steps_;
};

}  // namespace gallop::tune
