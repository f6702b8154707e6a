#pragma once

#include <cstdint>

#include "gallop/model/model.h"
#include "gallop/precision/precision.h"

namespace gallop {

/// What one training step cannot do without, and what this machine can do at most.
struct Limit {
  double flops = 0;  ///< Of products and convolutions.
  double bytes = 0;  ///< To and from memory.
  double flops_per_second = 0;
  double bytes_per_second = 0;

  double milliseconds() const {
    return 1000 * (flops / flops_per_second + bytes / bytes_per_second);
  }
};

/// Counts a step over `batch` inputs and measures both peaks, which takes a few seconds.
/// FLOPs: forward's, twice as many in backward, without the gradient of the images; of causal
/// attention only what is seen. Bytes: each activation that backward needs is written and read, and
/// so is its gradient, both in the format of the precision; each parameter is read forward and
/// backward, its gradient is written and read, and the update reads and writes it and each of its
/// `moments` states, in fp32. The rate of memory is that of copying as much as all these hold.
Limit limit_of_step(model::Model& model, const model::Task& task, int64_t batch,
                    precision::Precision precision, int64_t moments);

}  // namespace gallop
