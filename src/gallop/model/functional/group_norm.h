#pragma once

#include <cstdint>

#include <ATen/core/Tensor.h>

namespace gallop::model::functional {

/// Group norm of x, [N, C, ...], over `groups` groups of channels; weight and bias are [C], or
/// undefined. Images in channels_last on a GPU stay in that format: LibTorch would copy them to the
/// contiguous one, as would all that follows.
at::Tensor group_norm(const at::Tensor& x, int64_t groups, const at::Tensor& weight,
                      const at::Tensor& bias, double eps);

/// Whether group_norm() computes it by channels_last_group_norm().
bool takes_channels_last_group_norm(const at::Tensor& x, const at::Tensor& weight,
                                    const at::Tensor& bias);

/// Group norm of images [N, C, H, W] by sums over the pixels of each channel, in fp32. The result
/// has the data type of LibTorch's operator: fp32 under autocast, else that of x.
at::Tensor channels_last_group_norm(const at::Tensor& x, int64_t groups, const at::Tensor& weight,
                                    const at::Tensor& bias, double eps);

}  // namespace gallop::model::functional
