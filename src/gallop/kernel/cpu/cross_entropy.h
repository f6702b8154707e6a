#pragma once

#include <cstdint>

#include "gallop/kernel/cpu/kernels_for.h"
#include "gallop/kernel/number.h"

namespace gallop::kernel {

/// The target of each row: a class index or, if `indices` is null, a probability for each of the
/// classes in fp32 or bf16.
struct CrossEntropyTargets {
  const int64_t* indices;
  const float* shares_fp32;
  const Bf16* shares_bf16;
  int64_t ignored;  ///< The index of ignored rows; other indices must be in range.
  float smoothing;
};

/// What backward needs of a row with logits x: the softmax times the sum of the row's targets is
/// e^(x - largest) * share.
struct CrossEntropyRow {
  float largest, share;
};

template <typename Number>
struct CrossEntropyRows {
  const Number* logits;
  CrossEntropyTargets targets;
  CrossEntropyRow* saved;
  double* losses;
  int32_t* correct;  ///< Whether the target is the first largest logit; null for soft targets.
  int64_t rows, columns;
};

/// The gradient of the sum of the losses times `scale`. May overwrite the logits.
template <typename Number>
struct CrossEntropyGradientRows {
  const Number* logits;
  CrossEntropyTargets targets;
  const CrossEntropyRow* saved;
  Number* gradient;
  float scale;
  int64_t rows, columns;
};

struct CrossEntropyKernels {
  void (*forward_fp32)(const CrossEntropyRows<float>& rows);
  void (*forward_bf16)(const CrossEntropyRows<Bf16>& rows);
  void (*backward_fp32)(const CrossEntropyGradientRows<float>& rows);
  void (*backward_bf16)(const CrossEntropyGradientRows<Bf16>& rows);
};

}  // namespace gallop::kernel
