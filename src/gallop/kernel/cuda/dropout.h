#pragma once

#include <ATen/core/Tensor.h>

#include "gallop/kernel/cuda/launcher.h"
#include "gallop/kernel/dropout.h"

namespace gallop::kernel {

/// dropout() of kernel/dropout.h on a GPU, for fp32, bf16 and fp16: the same elements are dropped.
/// The tensors of `key` are on the GPU too.
at::Tensor dropout_on_gpu(CudaLauncher& launcher, const at::Tensor& x, double p,
                          const DropoutKey& key);

}  // namespace gallop::kernel
