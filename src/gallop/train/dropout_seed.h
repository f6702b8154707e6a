#pragma once

#include <cstdint>

namespace gallop::train {

/// The seed of dropout for a rank, or for a slice of the batch (`number`). Seeds of different
/// numbers are far apart, so that they do not collide with other seeds that users choose.
constexpr uint64_t dropout_seed(uint64_t seed, uint64_t number) {
  constexpr uint64_t kSeedsApart = 0x9E3779B97F4A7C15;
  return seed + number * kSeedsApart;
}

}  // namespace gallop::train
