#pragma once

#include <ATen/core/Tensor.h>

#include "gallop/kernel/cuda/launcher.h"
#include "gallop/kernel/linear_cross_entropy.h"

// The operators of linear_cross_entropy.h on a GPU: GEMMs by LibTorch, the steps between by our
// kernels; x may be fp16 too.
namespace gallop::kernel {

/// The weight has the format of x. Does not synchronize with the GPU: if a class is out of range,
/// the loss is NaN.
LinearCrossEntropyResult linear_cross_entropy_on_gpu(CudaLauncher& launcher, const at::Tensor& x,
                                                     const at::Tensor& weight,
                                                     const at::Tensor& target,
                                                     const LinearCrossEntropyOptions& options);

}  // namespace gallop::kernel
