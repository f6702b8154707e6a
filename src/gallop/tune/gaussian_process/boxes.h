#pragma once

#include <cstddef>
#include <vector>

namespace gallop::tune {

/// The losses below a reference that none of some losses dominates, cut into boxes that do not
/// overlap. Their ends are levels, of which each objective has a list.
struct UndominatedBoxes {
  struct Box {
    std::vector<size_t> lower, upper;  ///< For each objective, the index of the level.
  };
  /// For each objective, rising, from -infinity to the reference.
  std::vector<std::vector<double>> levels;
  std::vector<Box> boxes;
};

/// For two or three objectives; the number of boxes goes with that of losses (a sweep along the
/// last objective over the steps of the first two). Losses that are not below the reference in all
/// objectives do not count.
UndominatedBoxes undominated_boxes(std::vector<std::vector<double>> losses,
                                   const std::vector<double>& reference);

}  // namespace gallop::tune
