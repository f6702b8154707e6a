#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/kernel/cuda/launcher.h"
#include "gallop/kernel/optimizer_step.h"

// optimizer_step.h's operators as starts of kernels: one for every kUpdateTensors parameters, and
// one behind each. Nothing is read on the host.
namespace gallop::kernel {

at::Tensor adamw_on_gpu(CudaLauncher& launcher, const OptimizerStep& step, at::TensorList exp_avgs,
                        at::TensorList exp_avg_sqs, const AdamwOptions& options);
at::Tensor sgd_on_gpu(CudaLauncher& launcher, const OptimizerStep& step,
                      at::TensorList momentum_buffers, const SgdOptions& options);
at::Tensor norm_on_gpu(CudaLauncher& launcher, at::TensorList tensors);

}  // namespace gallop::kernel
