#pragma once

#include <ATen/core/Tensor.h>

#include "gallop/data/image.h"
#include "gallop/data/signature.h"

namespace gallop::app {

/// The unnormalized image of a batch row [C, H, W].
data::Image image_of(const at::Tensor& row, const data::Signature& inputs);

}  // namespace gallop::app
