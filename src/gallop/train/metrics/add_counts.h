#pragma once

#include <ATen/core/Tensor.h>

namespace gallop::train {

/// Adds counts of any device to `counts`, which stay on their device and may be undefined at first.
inline void add_counts(at::Tensor& counts, const at::Tensor& more) {
  counts = counts.defined() ? counts.add(more.to(counts.device())) : more;
}

}  // namespace gallop::train
