#pragma once

#include <cstdint>

namespace gallop::data {

/// The name of samples with so many views (Signature::views), in the plural.
inline const char* name_of_views(int64_t views) {
  constexpr int64_t kPair = 2, kTriplet = 3;
  if (views == kPair) return "pairs";
  return views == kTriplet ? "triplets" : "samples";
}

}  // namespace gallop::data
