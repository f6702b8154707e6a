#pragma once

#include <ATen/core/Tensor.h>

#include "gallop/kernel/cross_entropy.h"
#include "gallop/kernel/cuda/launcher.h"

// The operators of cross_entropy.h on a GPU; logits may be fp16 too. If a class is out of range,
// the loss and the row's gradient are NaN.
namespace gallop::kernel {

CrossEntropyResult cross_entropy_on_gpu(CudaLauncher& launcher, const at::Tensor& logits,
                                        const at::Tensor& target,
                                        const CrossEntropyOptions& options);
at::Tensor cross_entropy_backward_on_gpu(CudaLauncher& launcher, const at::Tensor& gradient,
                                         const at::Tensor& logits, const at::Tensor& target,
                                         const at::Tensor& rows,
                                         const CrossEntropyOptions& options);

}  // namespace gallop::kernel
