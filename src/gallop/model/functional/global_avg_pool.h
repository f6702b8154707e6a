#pragma once

#include <ATen/core/Tensor.h>

namespace gallop::model::functional {

/// The mean of each channel over the pixels, [N, C] of x [N, C, H, W], with its gradient. Uses
/// gallop's kernel if it supports x (kernel/global_avg_pool.h), otherwise LibTorch's avg_pool2d:
/// unlike that of mean(), its gradient has the memory format of x, which the layers before need.
at::Tensor global_avg_pool(const at::Tensor& x);

}  // namespace gallop::model::functional
