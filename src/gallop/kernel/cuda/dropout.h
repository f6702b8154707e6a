#pragma once

#include <ATen/core/Tensor.h>

#include "gallop/kernel/cuda/launcher.h"

namespace gallop::kernel {

/// dropout() of kernel/dropout.h on a GPU, of fp32, bf16 and fp16: the same numbers are dropped.
/// `seed_and_step` is on the GPU too.
at::Tensor dropout_on_gpu(CudaLauncher& launcher, const at::Tensor& x, double p,
                          const at::Tensor& seed_and_step, int64_t call);

}  // namespace gallop::kernel
