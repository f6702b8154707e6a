#pragma once

#include <cstdint>
#include <vector>

#include "gallop/tune/random.h"

namespace gallop::tune {

/// Training samples. A dimension is either a number from 0 to 1 or the index of a category.
struct Samples {
  /// The probability of each category of a dimension; empty for a numeric dimension.
  std::vector<std::vector<double>> categories;
  std::vector<std::vector<double>> points;
  std::vector<double> values;
};

/// A leaf of a tree: a box of the space with a constant value.
struct Leaf {
  struct Side {
    double low = 0, high = 1;   ///< Bounds of a numeric dimension.
    std::vector<bool> members;  ///< Members of a categorical dimension.
  };
  std::vector<Side> sides;
  double value = 0;
};

/// The leaves of a regression tree that is grown on a bootstrap sample until the values of a leaf
/// are equal or it is `depth` splits deep. Each split minimizes the squared error over all
/// dimensions; ties are broken at random (Breiman, "Random forests", 2001, with all dimensions
/// tried at each split).
std::vector<Leaf> grown_tree(const Samples& samples, int64_t depth, Random& random);

/// The fraction of a dimension that a side of a box covers.
double size_of(const Leaf::Side& side, const std::vector<double>& categories);

}  // namespace gallop::tune
