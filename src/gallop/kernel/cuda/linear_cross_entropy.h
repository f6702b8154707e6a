#pragma once

#include <ATen/core/Tensor.h>

#include "gallop/kernel/cuda/launcher.h"
#include "gallop/kernel/linear_cross_entropy.h"

// linear_cross_entropy.h's operators on a GPU: products by LibTorch, what lies between by our
// kernels; x may be fp16 too.
namespace gallop::kernel {

/// The weight in the format of x. Never waits for the GPU: a class that is out of range makes the
/// loss no number.
LinearCrossEntropyResult linear_cross_entropy_on_gpu(CudaLauncher& launcher, const at::Tensor& x,
                                                     const at::Tensor& weight,
                                                     const at::Tensor& target,
                                                     const LinearCrossEntropyOptions& options);

}  // namespace gallop::kernel
