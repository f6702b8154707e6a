#pragma once

#include <cstddef>
#include <vector>

#include "gallop/tune/pareto.h"

namespace gallop::tune {

/// What select_by_hypervolume() is for rows of two objectives or more in lexicographic order, of
/// which none dominates another or equals it, and a finite reference; `count` is at most their
/// number.
///
/// What a row adds only shrinks as more are selected, so that one whose share is fresh and above
/// the older shares of all others is the next. With three objectives shares are found by a
/// BoxCover; where two of them are as close as its error, added_volume() decides, so that what is
/// selected is the same as by that alone.
std::vector<size_t> select_greedily(const LossRows& rows, size_t count,
                                    const std::vector<double>& reference);

}  // namespace gallop::tune
