#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gallop::tune {

/// A Sobol sequence in Gray-code order with the direction numbers of Joe and Kuo ("Constructing
/// Sobol sequences with better two-dimensional projections", 2008), a low-discrepancy sequence in
/// the unit cube.
class Sobol {
 public:
  static constexpr size_t kMostDimensions = 128;

  /// `dimensions` must be at most kMostDimensions.
  explicit Sobol(size_t dimensions);

  /// Point `index` of the sequence, below 2^32, in units of 2^-32.
  std::vector<uint32_t> at(uint64_t index) const;

 private:
  std::vector<std::vector<uint32_t>> directions_;  // By dimension and bit.
};

/// Owen-scrambles a coordinate in units of 2^-32: each bit is flipped at random, depending on the
/// bits before it, which preserves the low discrepancy and makes each point uniform (Owen,
/// "Randomly permuted (t,m,s)-nets", 1995).
uint32_t scrambled(uint32_t coordinate, uint64_t seed, size_t dimension);

}  // namespace gallop::tune
