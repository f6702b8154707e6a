#pragma once

#include <cstdint>

#include "gallop/base/philox.h"

namespace gallop {

/// A keyed permutation of 0..size-1: position in an epoch to sample index, in O(1) and without
/// state. A balanced Feistel network over the next even power of two with round keys from Philox,
/// and cycle walking (Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002);
/// fewer than four walks are expected.
class Permutation {
 public:
  /// `size` at least 1. Equal (seed, epoch, size) give equal permutations on every machine.
  Permutation(uint64_t seed, uint64_t epoch, int64_t size);

  int64_t size() const { return size_; }

  /// The sample at `position`; both in [0, size).
  int64_t operator()(int64_t position) const;

 private:
  static constexpr int kRounds = 6;

  uint64_t encrypt(uint64_t value) const;

  int64_t size_;
  uint32_t half_bits_;
  uint64_t half_mask_;
  uint64_t round_keys_[kRounds];
};

}  // namespace gallop
