#include "gallop/kernel/cpu/embedding.h"

#include "gallop/kernel/cpu/vectors.h"

namespace gallop::kernel {
namespace {

template <typename Number>
void add(const Number* a, const Number* b, Number* to, int64_t count) {
  if (b == nullptr) {
    __builtin_memcpy(to, a, static_cast<uint64_t>(count) * sizeof(Number));
    return;
  }
  over_vectors(0, count, [&](int64_t i, auto lanes) {
    lanes.put(to + i, lanes.get(a + i) + lanes.get(b + i));
  });
}

template <typename Number>
void sum_rows(const Number* from, int64_t stride, const int64_t* rows, int64_t count, Number* to,
              int64_t columns) {
  over_vectors(0, columns, [&](int64_t i, auto lanes) {
    // Every fourth row in a sum of its own, which errs less and does not wait.
    F32 parts[4] = {fill(0), fill(0), fill(0), fill(0)};
    for (int64_t row = 0; row < count; ++row) {
      parts[row % 4] = parts[row % 4] + lanes.get(from + rows[row] * stride + i);
    }
    lanes.put(to + i, sum_of(parts));
  });
}

}  // namespace

template <>
EmbeddingKernels make_kernels<EmbeddingKernels, kIsa>() {
  return {.add_fp32 = add<float>,
          .add_bf16 = add<Bf16>,
          .sum_fp32 = sum_rows<float>,
          .sum_bf16 = sum_rows<Bf16>};
}

}  // namespace gallop::kernel
