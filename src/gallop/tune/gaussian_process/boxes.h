#pragma once

#include <cstddef>
#include <vector>

namespace gallop::tune {

/// The non-dominated region below a reference point, decomposed into disjoint boxes whose corners
/// are indices into a sorted list of levels for each objective.
struct UndominatedBoxes {
  struct Box {
    std::vector<size_t> lower, upper;  ///< For each objective, the index of the level.
  };
  /// The levels of each objective, ascending, from -infinity to the reference.
  std::vector<std::vector<double>> levels;
  std::vector<Box> boxes;
};

/// The decomposition for two or three objectives, by a sweep along the last one; the number of
/// boxes is linear in the number of losses. Losses that are not below the reference in every
/// objective are ignored.
UndominatedBoxes undominated_boxes(std::vector<std::vector<double>> losses,
                                   const std::vector<double>& reference);

}  // namespace gallop::tune
