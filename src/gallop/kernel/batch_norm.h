#pragma once

#include <ATen/core/Tensor.h>

#include "gallop/kernel/isa.h"

// Batch normalization for training (Ioffe and Szegedy 2015) with what follows it in residual
// networks, of [N, C, ...] with the channels last in memory. Sums are taken over fixed parts in a
// fixed order: results do not depend on the number of threads.
namespace gallop::kernel {

/// Whether batch_norm takes such a tensor: on the CPU, fp32 or bf16, not empty, [N, C], or
/// [N, C, H, W] in channels_last.
bool takes_batch_norm(const at::Tensor& x);

/// Weight and bias, and the running statistics, which each forward pass moves by `momentum` (the
/// variance without bias, but 0 of a single value). All fp32 [C] and contiguous.
struct BatchNormParameters {
  at::Tensor weight, bias;
  at::Tensor running_mean, running_var;
  double momentum = 0.1;
  double eps = 1e-5;
};

struct BatchNormResult {
  at::Tensor y;
  at::Tensor mean, inverse_deviation;  ///< fp64 [C].
  at::Tensor positive;                 ///< One bit a number: y > 0. Undefined unless asked for.
};

/// y = relu(norm(x) + residual). `residual` may be undefined; it has sizes and dtype of x, and any
/// strides. `keep_positive` is what the backward pass needs of a ReLU over a residual.
BatchNormResult batch_norm(const at::Tensor& x, const at::Tensor& residual,
                           const BatchNormParameters& parameters, bool relu, bool keep_positive);

/// Numbers of `positive`, which are int16, for such an x.
int64_t batch_norm_sign_words(const at::Tensor& x);

struct BatchNormGradientInput {
  at::Tensor dy;
  at::Tensor more_dy;  ///< A second gradient of y to be added, or undefined.
  at::Tensor x;
  at::Tensor weight, bias;
  at::Tensor mean, inverse_deviation, positive;  ///< As batch_norm gave them.
  bool relu = false;
  bool wants_residual = false;  ///< Where there was one; with ReLU `positive` must be defined.
  bool wants_x = true;
};

struct BatchNormGradients {
  at::Tensor x, residual;   ///< Undefined where not wanted.
  at::Tensor weight, bias;  ///< fp32 [C].
};

BatchNormGradients batch_norm_backward(const BatchNormGradientInput& input);

/// The same for one instruction set, and not as an operator: for tests.
BatchNormResult batch_norm_by(Isa isa, const at::Tensor& x, const at::Tensor& residual,
                              const BatchNormParameters& parameters, bool relu, bool keep_positive);
BatchNormGradients batch_norm_backward_by(Isa isa, const BatchNormGradientInput& input);

}  // namespace gallop::kernel
