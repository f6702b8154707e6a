#pragma once

#include <ATen/core/Tensor.h>

#include "gallop/kernel/conv2d_wgrad.h"
#include "gallop/kernel/isa.h"

namespace gallop::kernel {

/// Whether conv2d() supports x [N, C, H, W] and weight [out, C, height, width], whose sizes are the
/// window's, and is the fastest way, with and without a bias: bf16 on a CPU with tiles, x in
/// channels_last, few channels in multiples of 16, results of at least 16 columns, and a window of
/// more than one pixel.
bool takes_conv2d(const at::Tensor& x, const at::Tensor& weight, const Conv2dWindow& window);

/// The convolution in bf16 and channels_last, with a bias [out] in fp32 or bf16, which may be
/// undefined. Accumulates in fp32, in an order that does not depend on the number of threads.
at::Tensor conv2d(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                  const Conv2dWindow& window);

/// Whether conv2d_dgrad() supports dy for an x of this size and is the fastest way: bf16, few
/// channels, any window, and x has at least 16 columns per unit of the stride.
bool takes_conv2d_dgrad(const at::Tensor& dy, const at::Tensor& weight, int64_t height,
                        int64_t width, const Conv2dWindow& window);

/// The gradient of a convolution's x [N, C, height, width]: for each position within the stride, a
/// convolution of dy with the flipped weights of that position.
at::Tensor conv2d_dgrad(const at::Tensor& dy, const at::Tensor& weight, int64_t height,
                        int64_t width, const Conv2dWindow& window);

/// conv2d() by one instruction set, for all supported sizes, not as an operator: for tests.
at::Tensor conv2d_by(Isa isa, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                     const Conv2dWindow& window);
at::Tensor conv2d_dgrad_by(Isa isa, const at::Tensor& dy, const at::Tensor& weight, int64_t height,
                           int64_t width, const Conv2dWindow& window);

}  // namespace gallop::kernel
