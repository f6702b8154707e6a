#pragma once

#include <ATen/core/Tensor.h>

#include "gallop/kernel/batch_norm_activation.h"
#include "gallop/kernel/isa.h"

// Batch normalization for training (Ioffe and Szegedy 2015) with the residual and the activation of
// residual networks, for [N, C, ...] with the channels last in memory. Reductions are over fixed
// parts in a fixed order: results do not depend on the number of threads.
namespace gallop::kernel {

/// Whether batch_norm() supports the tensor: on the CPU, fp32 or bf16, not empty, [N, C], or
/// [N, C, H, W] in channels_last.
bool takes_batch_norm(const at::Tensor& x);

/// Weight and bias, and the running statistics, which each forward pass updates by `momentum` (the
/// variance is unbiased, but 0 for a single value). All are fp32 [C] and contiguous.
struct BatchNormParameters {
  at::Tensor weight, bias;
  at::Tensor running_mean, running_var;
  double momentum = 0.1;
  double eps = 1e-5;
};

struct BatchNormResult {
  at::Tensor y;
  at::Tensor mean, inverse_deviation;  ///< fp64 [C].
  at::Tensor positive;                 ///< One bit per element: y > 0. Undefined unless requested.
};

/// y = activation(norm(x) + residual). `residual` may be undefined; it has the sizes and dtype of
/// x, any strides. `keep_positive` saves the ReLU mask that the backward pass needs with a
/// residual. Throws InternalError for a residual with an activation other than ReLU.
BatchNormResult batch_norm(const at::Tensor& x, const at::Tensor& residual,
                           const BatchNormParameters& parameters, BatchNormActivation activation,
                           bool keep_positive);

/// Number of int16 elements of `positive` for this x.
int64_t batch_norm_sign_words(const at::Tensor& x);

struct BatchNormGradientInput {
  at::Tensor dy;
  at::Tensor more_dy;  ///< A second gradient of y to add, or undefined.
  at::Tensor x;
  at::Tensor weight, bias;
  at::Tensor mean, inverse_deviation, positive;  ///< Results of batch_norm().
  BatchNormActivation activation = BatchNormActivation::kNone;
  bool wants_residual = false;  ///< If there was one; with ReLU `positive` must be defined.
  bool wants_x = true;
};

struct BatchNormGradients {
  at::Tensor x, residual;   ///< Undefined if not requested.
  at::Tensor weight, bias;  ///< fp32 [C].
};

BatchNormGradients batch_norm_backward(const BatchNormGradientInput& input);

/// batch_norm() by one instruction set, not as an operator: for tests.
BatchNormResult batch_norm_by(Isa isa, const at::Tensor& x, const at::Tensor& residual,
                              const BatchNormParameters& parameters, BatchNormActivation activation,
                              bool keep_positive);
BatchNormGradients batch_norm_backward_by(Isa isa, const BatchNormGradientInput& input);

}  // namespace gallop::kernel
