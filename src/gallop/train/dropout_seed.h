#pragma once

#include <cstdint>

namespace gallop::train {

/// The seed of dropout in a process, by its rank, or in a slice of the batch, by its number. Seeds
/// of two of them differ by an odd number far from those that people choose.
constexpr uint64_t dropout_seed(uint64_t seed, uint64_t number) {
  constexpr uint64_t kSeedsApart = 0x9E3779B97F4A7C15;
  return seed + number * kSeedsApart;
}

}  // namespace gallop::train
