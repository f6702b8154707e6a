#pragma once

#include <ATen/core/Tensor.h>

#include "gallop/data/image.h"
#include "gallop/data/signature.h"

namespace gallop::app {

/// The image in a row [C, H, W] of a batch, as it was before it was normalized.
data::Image image_of(const at::Tensor& row, const data::Signature& inputs);

}  // namespace gallop::app
