#pragma once

#include <cstdint>

#include <c10/core/Device.h>

namespace gallop::train {

/// The seed of dropout for a rank, or for a slice of the batch (`number`). Seeds of different
/// numbers are far apart, so that they do not collide with other seeds that users choose.
constexpr uint64_t dropout_seed(uint64_t seed, uint64_t number) {
  constexpr uint64_t kSeedsApart = 0x9E3779B97F4A7C15;
  return seed + number * kSeedsApart;
}

/// Seeds LibTorch's generator for step `step`, from which operators such as dropout on a GPU draw,
/// so that a resumed run draws the same numbers, and each process its own.
void seed_step(uint64_t seed, int64_t step, c10::Device device, int64_t rank = 0);

}  // namespace gallop::train
