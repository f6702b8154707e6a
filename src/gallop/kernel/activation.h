#pragma once

#include <optional>

#include <ATen/core/Tensor.h>

#include "gallop/kernel/activation_kind.h"

namespace gallop::kernel {

/// Whether the functions below support them: x [..., C] in fp32 or bf16, contiguous and on the CPU;
/// bias [C] in fp32 or the format of x, contiguous and on the CPU, or undefined.
bool takes_activation(const at::Tensor& x, const at::Tensor& bias);

/// act(x + bias), computed in fp32 and returned in the format of x.
at::Tensor activation(Activation kind, const at::Tensor& x, const at::Tensor& bias);

struct ActivationGradients {
  at::Tensor x;
  at::Tensor bias;  ///< [C]; undefined if not requested.
};

/// The gradients for dy, the gradient of y, in one pass. `bias_format` is the format of the bias
/// gradient, if one is requested: the column sums of the gradient of x before it is rounded, whose
/// bits do not depend on the number of threads.
ActivationGradients activation_backward(Activation kind, const at::Tensor& dy, const at::Tensor& x,
                                        const at::Tensor& bias,
                                        std::optional<at::ScalarType> bias_format);

}  // namespace gallop::kernel
