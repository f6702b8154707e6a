#pragma once

#include <ATen/core/Tensor.h>

#include "gallop/kernel/isa.h"

// Global average pooling: the means over the pixels of images in channels_last.
namespace gallop::kernel {

/// Whether global_avg_pool() supports x: [N, C, H, W] in fp32 or bf16 on the CPU, in channels_last,
/// not empty.
bool takes_global_avg_pool(const at::Tensor& x);

/// The mean of each channel of each image, [N, C]. Pixels are added in fp32, in blocks of a fixed
/// size and order: up to one block, bit for bit as LibTorch's avg_pool2d.
at::Tensor global_avg_pool(const at::Tensor& x);

/// The gradient of global_avg_pool(): dy [N, C] over the number of pixels, as [N, C, height, width]
/// in channels_last.
at::Tensor global_avg_pool_backward(const at::Tensor& dy, int64_t height, int64_t width);

/// The same by one instruction set, not as operators: for tests.
at::Tensor global_avg_pool_by(Isa isa, const at::Tensor& x);
at::Tensor global_avg_pool_backward_by(Isa isa, const at::Tensor& dy, int64_t height,
                                       int64_t width);

}  // namespace gallop::kernel
