#pragma once

#include <cstdint>
#include <vector>

#include "gallop/tune/random.h"

namespace gallop::tune {

/// Points with a value each. Dimensions are either numbers from 0 to 1, or indices of categories.
struct Samples {
  /// The share of each category of a dimension; empty for a dimension of numbers.
  std::vector<std::vector<double>> categories;
  std::vector<std::vector<double>> points;
  std::vector<double> values;
};

/// A part of the space on which a tree has one value.
struct Leaf {
  struct Side {
    double low = 0, high = 1;   ///< Of a dimension of numbers.
    std::vector<bool> members;  ///< Of one of categories.
  };
  std::vector<Side> sides;
  double value = 0;
};

/// The leaves of a regression tree, which is grown on as many samples as there are, drawn with
/// replacement, until the values of a leaf are equal or it is `depth` splits deep. Each split makes
/// the squared errors as small as can be; equally good ones are chosen among at random (Breiman,
/// "Random forests", 2001, with all dimensions tried at each split).
std::vector<Leaf> grown_tree(const Samples& samples, int64_t depth, Random& random);

/// What share of a dimension a side has.
double size_of(const Leaf::Side& side, const std::vector<double>& categories);

}  // namespace gallop::tune
