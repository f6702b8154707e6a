#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/data/loader.h"

namespace gallop::data {

/// The indices of the broken samples that a loader with this configuration and seed left out of a
/// batch, before samples were drawn (draw_training_samples()) or put in order (put_in_order()).
std::vector<int64_t> broken_samples(const Batch& batch, const Samples& samples,
                                    const LoaderConfig& config, int64_t seed);
/// Samples::describe() for such an index.
std::string describe_broken(const Samples& samples, int64_t index);

}  // namespace gallop::data
