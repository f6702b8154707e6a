#pragma once

#include <cstddef>
#include <vector>

#include "gallop/tune/pareto/pareto.h"

namespace gallop::tune {

/// Rows that are selected and what each adds to those before it.
struct GreedySteps {
  std::vector<size_t> rows;
  std::vector<double> shares;
  std::vector<double> errors;  ///< About how far a share may be from added_volume(), or infinite.
};

/// What select_by_hypervolume() does with rows of two objectives or more in lexicographic order, of
/// which none dominates another or equals it, and a finite reference; `count` is at most their
/// number.
///
/// What a row adds only shrinks as more are selected, so that one whose share is fresh and above
/// the older shares of all others is the next. With three objectives shares are found by a
/// BoxCover; where two of them are as close as its error, added_volume() decides, so that what is
/// selected is the same as by that alone.
GreedySteps select_greedily(const LossRows& rows, size_t count,
                            const std::vector<double>& reference);

/// The same for rows of which few have come or gone since the last time. What was selected before
/// one that has gone, and before one that has come could have been, is selected again; with three
/// objectives it takes one BoxCover to know that for a row that has come.
class GreedySelection {
 public:
  std::vector<size_t> select(const LossRows& rows, size_t count,
                             const std::vector<double>& reference);

 private:
  /// How many of the last steps are the same for these rows; where they are fewer than `count`, at
  /// most so many.
  size_t unchanged_steps(const LossRows& rows, size_t count) const;
  /// How many of the last steps come before any in which this row could be selected.
  size_t steps_without(const std::vector<double>& row) const;

  LossRows rows_;
  std::vector<double> reference_;
  GreedySteps steps_;
};

}  // namespace gallop::tune
