#pragma once

#include <cstdint>

#include "gallop/base/permutation.h"
#include "gallop/data/samples.h"

namespace gallop::data {

/// The order in which a loader shuffles the samples of an epoch.
inline Permutation order_of(const Samples& samples, int64_t seed, int64_t epoch) {
  return {static_cast<uint64_t>(seed), static_cast<uint64_t>(epoch), samples.size()};
}

/// The index that a loader reads at a position of an epoch.
inline int64_t index_at(const Samples& samples, bool shuffle, const Permutation& order,
                        int64_t position) {
  return shuffle && !samples.has_own_order() ? order(position) : position;
}

}  // namespace gallop::data
