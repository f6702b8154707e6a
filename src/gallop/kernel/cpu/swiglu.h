#pragma once

#include <cstdint>

#include "gallop/kernel/cpu/kernels_for.h"
#include "gallop/kernel/number.h"

namespace gallop::kernel {

/// y = silu(a) * b for rows [a, b], both of `columns` elements.
template <typename Number>
struct SwigluRows {
  const Number* x;
  Number* y;
  int64_t rows, columns;
};

template <typename Number>
struct SwigluGradientRows {
  const Number* dy;
  const Number* x;
  Number* dx;
  int64_t rows, columns;
};

struct SwigluKernels {
  void (*forward_fp32)(const SwigluRows<float>& rows);
  void (*forward_bf16)(const SwigluRows<Bf16>& rows);
  void (*backward_fp32)(const SwigluGradientRows<float>& rows);
  void (*backward_bf16)(const SwigluGradientRows<Bf16>& rows);
};

}  // namespace gallop::kernel
