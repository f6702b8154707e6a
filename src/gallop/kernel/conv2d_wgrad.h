#pragma once

#include <ATen/core/Tensor.h>

#include "gallop/kernel/isa.h"

namespace gallop::kernel {

struct Conv2dWindow {
  int64_t height = 1, width = 1;
  int64_t stride = 1, padding = 0;
};

/// Whether conv2d_wgrad() supports this: on a CPU with bf16 instructions, [N, C, H, W] in bf16 and
/// channels_last, where the convolution's result has an even width and `out`, a multiple of 16,
/// channels.
bool takes_conv2d_wgrad(const at::Tensor& x, int64_t out, const Conv2dWindow& window);

/// Whether it is faster than LibTorch's as well: always with tiles (AMX); without them for 8
/// channels or more and a weight that is small, also compared with the pixels of the result.
bool prefers_conv2d_wgrad(const at::Tensor& x, int64_t out, const Conv2dWindow& window);

/// The gradient of a convolution's weight in fp32, [out, C, height, width] in channels_last, from
/// dy, bf16 [N, out, ...] in channels_last. A GEMM of dy's and x's pixels; its sums
/// are over fixed parts of the batch in a fixed order, so that no bit depends on the number of
/// threads.
at::Tensor conv2d_wgrad(const at::Tensor& dy, const at::Tensor& x, const Conv2dWindow& window);

/// conv2d_wgrad() by one instruction set, not as an operator: for tests.
at::Tensor conv2d_wgrad_by(Isa isa, const at::Tensor& dy, const at::Tensor& x,
                           const Conv2dWindow& window);

}  // namespace gallop::kernel
