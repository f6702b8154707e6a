#include "gallop/kernel/cpu/math_table.h"

#include "gallop/kernel/cpu/math.h"

namespace gallop::kernel {

template <>
MathTable make_kernels<MathTable, kIsa>() {
  return {.exp = [](const float* x, float* y) { store(y, exp(load(x))); },
          .log = [](const float* x, float* y) { store(y, log(load(x))); },
          .sigmoid = [](const float* x, float* y) { store(y, sigmoid(load(x))); },
          .tanh = [](const float* x, float* y) { store(y, tanh(load(x))); },
          .erf = [](const float* x, float* y) { store(y, erf(load(x))); },
          .root = [](const float* x, float* y) { store(y, root(load(x))); },
          .quotient = [](const float* x, float* y) { store(y, quotient(fill(1), load(x))); },
          .inverse = [](const float* x, float* y) { store(y, inverse(load(x))); },
          .to_bf16 = [](const float* x, Bf16* y, int64_t n) { store(y, load(x, n), n); },
          .from_bf16 = [](const Bf16* x, float* y, int64_t n) { store(y, load(x, n), n); }};
}

}  // namespace gallop::kernel
