#pragma once

#include <cstdint>

#include "gallop/model/model.h"
#include "gallop/precision/precision.h"

namespace gallop {

/// The minimum work of one training step, and the peak rates of this machine (a roofline).
struct Limit {
  double flops = 0;  ///< Of GEMMs and convolutions.
  double bytes = 0;  ///< To and from memory.
  double flops_per_second = 0;
  double bytes_per_second = 0;

  double milliseconds() const {
    return 1000 * (flops / flops_per_second + bytes / bytes_per_second);
  }
};

/// Counts a step over `batch` inputs and measures both peak rates, which takes a few seconds.
/// FLOPs: those of forward, twice as many in backward, without the gradient of the images; of
/// causal attention only the visible tokens. Bytes: each activation saved for backward is written
/// and read, and so is its gradient, both in the data type of the precision; each parameter is read
/// forward and backward, its gradient is written and read, and the update reads and writes it and
/// each of its `moments` states, in fp32. The memory rate is that of a copy of all of these.
Limit limit_of_step(model::Model& model, const model::Task& task, int64_t batch,
                    precision::Precision precision, int64_t moments);

}  // namespace gallop
