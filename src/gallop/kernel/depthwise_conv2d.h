#pragma once

#include <utility>

#include <ATen/core/Tensor.h>

#include "gallop/kernel/isa.h"

// Gradients of depthwise convolution, one filter per channel, of images in channels_last.
namespace gallop::kernel {

struct DepthwiseWindow {
  int64_t height = 1, width = 1;  ///< Of the filters.
  int64_t stride = 1, padding = 0, dilation = 1;
};

/// Whether depthwise_conv2d_dgrad() supports the gradient of x [N, C, H, W] and is the fastest way:
/// bf16 on the CPU in channels_last, 16 channels or more, and a stride.
bool takes_depthwise_conv2d_dgrad(const at::Tensor& x, const DepthwiseWindow& window);

/// The gradient of x [N, C, height, width] for the weight [C, 1, window height, window width].
at::Tensor depthwise_conv2d_dgrad(const at::Tensor& dy, const at::Tensor& weight, int64_t height,
                                  int64_t width, const DepthwiseWindow& window);

/// Whether depthwise_conv2d_wgrad() supports x [N, C, H, W] and is the fastest way: fp32 or bf16 on
/// the CPU in channels_last, 16 channels or more; bf16 with more than nine weights per channel.
bool takes_depthwise_conv2d_wgrad(const at::Tensor& x, const DepthwiseWindow& window);

/// The gradients of the weight and, if requested, of the bias [C], in the dtype of x. Computed in
/// fp32; the sums are over fixed parts of the batch in a fixed order, so that no bit depends on the
/// number of threads.
std::pair<at::Tensor, at::Tensor> depthwise_conv2d_wgrad(const at::Tensor& dy, const at::Tensor& x,
                                                         const DepthwiseWindow& window,
                                                         bool wants_bias);

/// The same by one instruction set, for all supported sizes, not as operators: for tests.
at::Tensor depthwise_conv2d_dgrad_by(Isa isa, const at::Tensor& dy, const at::Tensor& weight,
                                     int64_t height, int64_t width, const DepthwiseWindow& window);
std::pair<at::Tensor, at::Tensor> depthwise_conv2d_wgrad_by(Isa isa, const at::Tensor& dy,
                                                            const at::Tensor& x,
                                                            const DepthwiseWindow& window,
                                                            bool wants_bias);

}  // namespace gallop::kernel
