#pragma once

#include <ATen/core/Tensor.h>

#include "gallop/kernel/cross_entropy.h"
#include "gallop/kernel/cuda/launcher.h"

// cross_entropy.h's operators on a GPU; logits may be fp16 too. A class that is out of range makes
// the loss, and the row's gradient, no number.
namespace gallop::kernel {

CrossEntropyResult cross_entropy_on_gpu(CudaLauncher& launcher, const at::Tensor& logits,
                                        const at::Tensor& target,
                                        const CrossEntropyOptions& options);
at::Tensor cross_entropy_backward_on_gpu(CudaLauncher& launcher, const at::Tensor& gradient,
                                         const at::Tensor& logits, const at::Tensor& target,
                                         const at::Tensor& rows,
                                         const CrossEntropyOptions& options);

}  // namespace gallop::kernel
