#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/kernel/cuda/launcher.h"
#include "gallop/kernel/optimizer_step.h"

// The operators of optimizer_step.h as kernel launches: one for some 40 parameters and one after
// each, and two before it for a rule with a trust ratio. No synchronization with the host.
namespace gallop::kernel {

at::Tensor update_on_gpu(CudaLauncher& launcher, const OptimizerStep& step);
at::Tensor norm_on_gpu(CudaLauncher& launcher, at::TensorList tensors);

/// A kernel of the text kUpdateText, the function of update_cuda.h that it consists of, and the
/// part of the text: the rule's name, or "norm".
struct UpdateKernel {
  std::string name, function, part;
};
/// The kernels of all rules.
std::vector<UpdateKernel> update_kernels();

}  // namespace gallop::kernel
