#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace gallop::tune {

/// Sobol's sequence in Gray-code order, with the direction numbers of Joe and Kuo ("Constructing
/// Sobol sequences with better two-dimensional projections", 2008): points that fill the unit cube
/// more evenly than random ones.
class Sobol {
 public:
  static constexpr size_t kMostDimensions = 128;

  /// `dimensions` at most kMostDimensions.
  explicit Sobol(size_t dimensions);

  /// Point `index` of the sequence, below 2^32, in units of 2^-32.
  std::vector<uint32_t> at(uint64_t index) const;

 private:
  std::vector<std::vector<uint32_t>> directions_;  // For each dimension one for each bit.
};

/// Scrambles a coordinate in units of 2^-32: each digit is turned or not by chance, together for
/// all coordinates that have the digits before it in common, so that a Sobol sequence remains as
/// even and its points become uniform (Owen, "Randomly permuted (t,m,s)-nets", 1995).
uint32_t scrambled(uint32_t coordinate, uint64_t seed, size_t dimension);

}  // namespace gallop::tune
