#pragma once

#include <ATen/core/Tensor.h>

#include "gallop/app/run_inputs.h"
#include "gallop/data/image.h"

namespace gallop::app {

/// The image in a row [C, H, W] of a batch, as it was before it was normalized.
data::Image image_of(const at::Tensor& row, const data::Signature& inputs);

}  // namespace gallop::app
