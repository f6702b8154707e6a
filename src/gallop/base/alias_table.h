#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "gallop/base/philox.h"

namespace gallop {

/// Draws from a discrete distribution in O(1) (Walker, "An efficient method for generating discrete
/// random variables with general distributions", 1977; built as by Vose, 1991).
class AliasTable {
 public:
  /// Weights are finite, none is negative, and one is positive; they need not add up to 1. Throws
  /// InternalError otherwise.
  explicit AliasTable(std::span<const double> weights);

  int64_t size() const { return static_cast<int64_t>(cells_.size()); }
  /// The index of one of the weights.
  int64_t draw(Philox& random) const;

 private:
  struct Cell {
    double own = 1;  ///< Share of the cell that belongs to its own index.
    int64_t alias = 0;
  };
  std::vector<Cell> cells_;
};

}  // namespace gallop
