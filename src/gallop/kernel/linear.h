#pragma once

#include <ATen/core/Tensor.h>

#include "gallop/kernel/isa.h"

// Linear layers of small networks: GEMM, bias and ReLU in one pass, and their gradients in two.
// Reduces over the inner dimension in order, so that no bit depends on the number
// of threads. GEMMs are in the format of y.
namespace gallop::kernel {

/// Whether linear() supports these and is the fastest way, for y in `output` format: x [..., K] in
/// fp32 or, for bf16, in either, weight [N, K] likewise and bias [N] in fp32, contiguous and on the
/// CPU. `bias` may be undefined.
bool takes_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                  at::ScalarType output);

/// y = x W^T + bias, or its ReLU.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, bool relu,
                  at::ScalarType output);

struct LinearWishes {
  bool x = true, weight = true, bias = true;
};

struct LinearGradients {
  at::Tensor x;       ///< In the format of x.
  at::Tensor weight;  ///< In that of the weight.
  at::Tensor bias;    ///< In fp32.
};

/// The gradients for dy, contiguous and in the format of y. With ReLU, `y` is the result of
/// linear(), else undefined. Gradients that are not requested are undefined.
LinearGradients linear_backward(const at::Tensor& dy, const at::Tensor& y, const at::Tensor& x,
                                const at::Tensor& weight, const LinearWishes& wanted);

/// linear() by one instruction set, for any size, not as operators: for tests.
at::Tensor linear_by(Isa isa, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                     bool relu, at::ScalarType output);
LinearGradients linear_backward_by(Isa isa, const at::Tensor& dy, const at::Tensor& y,
                                   const at::Tensor& x, const at::Tensor& weight,
                                   const LinearWishes& wanted);

}  // namespace gallop::kernel
