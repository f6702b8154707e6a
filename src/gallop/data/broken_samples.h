#pragma once

#include <cstdint>
#include <vector>

#include "gallop/data/loader.h"

namespace gallop::data {

/// The indices in `samples` of the broken samples that a loader with this configuration and seed
/// left out of a batch. Those of a set with an order of its own are indices before this order.
std::vector<int64_t> broken_samples(const Batch& batch, const Samples& samples,
                                    const LoaderConfig& config, int64_t seed);

}  // namespace gallop::data
