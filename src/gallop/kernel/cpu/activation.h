#pragma once

#include <cstdint>

#include "gallop/kernel/activation_kind.h"
#include "gallop/kernel/cpu/kernels_for.h"
#include "gallop/kernel/number.h"

namespace gallop::kernel {

/// y = act(x + bias) for [rows, columns]; `bias` may be null.
template <typename Number>
struct ActivationRows {
  const Number* x;
  const float* bias;
  Number* y;
  int64_t rows, columns;
};

/// dx = dy * act'(x + bias). Writes the column sums of dx to `sums` [columns] unless it is null.
template <typename Number>
struct ActivationGradientRows {
  const Number* dy;
  const Number* x;
  const float* bias;
  Number* dx;
  float* sums;
  int64_t rows, columns;
};

struct ActivationKernels {
  void (*forward_fp32)(Activation kind, const ActivationRows<float>& rows);
  void (*forward_bf16)(Activation kind, const ActivationRows<Bf16>& rows);
  void (*backward_fp32)(Activation kind, const ActivationGradientRows<float>& rows);
  void (*backward_bf16)(Activation kind, const ActivationGradientRows<Bf16>& rows);
};

}  // namespace gallop::kernel
