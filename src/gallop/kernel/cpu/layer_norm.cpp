#include "gallop/kernel/cpu/layer_norm.h"

#include "gallop/kernel/cpu/vectors.h"

namespace gallop::kernel {
namespace {

// Rows at once, so that one row's sums need not wait for those of the one before.
constexpr int64_t kRows = 4;
// Columns that lanes sum in fp32 before fp64 takes over.
constexpr int64_t kChunk = 512;

// totals[r] = the sum of row r's columns in parts that body(offset, lanes, sums) adds to sums[r].
template <int64_t kCount, typename Body>
inline void sum_columns(int64_t columns, double* totals, const Body& body) {
  for (int64_t r = 0; r < kCount; ++r) totals[r] = 0;
  for (int64_t begin = 0; begin < columns; begin += kChunk) {
    const int64_t end = columns - begin < kChunk ? columns : begin + kChunk;
    F32 sums[kCount];
    for (int64_t r = 0; r < kCount; ++r) sums[r] = fill(0);
    over_vectors(begin, end, [&](int64_t i, auto lanes) { body(i, lanes, sums); });
    for (int64_t r = 0; r < kCount; ++r) totals[r] += static_cast<double>(sum(sums[r]));
  }
}

struct None {};

template <int64_t kCount, typename X, typename R, typename Y>
inline void forward_rows(const LayerNormRows& r, int64_t first) {
  constexpr bool kAdds = !__is_same(R, None);
  const int64_t columns = r.columns, offset = first * columns;
  const X* x = static_cast<const X*>(r.x.data) + offset;
  X* sum = kAdds ? static_cast<X*>(r.sum.data) + offset : nullptr;
  Y* y = static_cast<Y*>(r.y.data) + offset;

  double totals[kCount] = {};
  if (kAdds || !r.rms) {
    sum_columns<kCount>(columns, totals, [&](int64_t i, auto lanes, F32* sums) {
      [[maybe_unused]] const F32 shift = r.shift == nullptr ? fill(0) : lanes.get(r.shift + i);
      for (int64_t row = 0; row < kCount; ++row) {
        const int64_t at = row * columns + i;
        F32 value = lanes.get(x + at);
        if constexpr (kAdds) {
          const F32 more = lanes.get(static_cast<const R*>(r.residual.data) + offset + at);
          value = value + (more + shift);
          lanes.put(sum + at, value);
          if constexpr (!__is_same(X, float)) value = lanes.get(sum + at);
        }
        sums[row] = sums[row] + value;
      }
    });
  }
  const X* from = kAdds ? sum : x;
  F32 mean[kCount], inverse[kCount];
  for (int64_t row = 0; row < kCount; ++row) {
    r.mean[first + row] =
        r.rms ? 0 : static_cast<float>(totals[row] / static_cast<double>(columns));
    mean[row] = fill(r.mean[first + row]);
  }
  sum_columns<kCount>(columns, totals, [&](int64_t i, auto lanes, F32* sums) {
    for (int64_t row = 0; row < kCount; ++row) {
      const F32 off = lanes.cleared(lanes.get(from + row * columns + i) - mean[row]);
      sums[row] = fma(off, off, sums[row]);
    }
  });
  for (int64_t row = 0; row < kCount; ++row) {
    const double square = totals[row] / static_cast<double>(columns);
    r.inverse[first + row] =
        static_cast<float>(1 / __builtin_sqrt(square + static_cast<double>(r.eps)));
    inverse[row] = fill(r.inverse[first + row]);
  }
  over_vectors(0, columns, [&](int64_t i, auto lanes) {
    const F32 weight = lanes.get(r.weight + i);
    const F32 bias = r.bias == nullptr ? fill(0) : lanes.get(r.bias + i);
    for (int64_t row = 0; row < kCount; ++row) {
      const int64_t at = row * columns + i;
      lanes.put(y + at, fma((lanes.get(from + at) - mean[row]) * inverse[row], weight, bias));
    }
  });
}

template <typename X, typename R, typename Y>
void forward(const LayerNormRows& r) {
  int64_t row = 0;
  for (; row + kRows <= r.rows; row += kRows) forward_rows<kRows, X, R, Y>(r, row);
  for (; row < r.rows; ++row) forward_rows<1, X, R, Y>(r, row);
}

template <typename X, typename R>
void forward(const LayerNormRows& r) {
  return r.y.bf16 ? forward<X, R, Bf16>(r) : forward<X, R, float>(r);
}

void any_forward(const LayerNormRows& r) {
  if (r.residual.data == nullptr)
    return r.x.bf16 ? forward<Bf16, None>(r) : forward<float, None>(r);
  if (r.x.bf16) return forward<Bf16, Bf16>(r);
  return r.residual.bf16 ? forward<float, Bf16>(r) : forward<float, float>(r);
}

template <int64_t kCount, typename X, typename Y>
inline void backward_rows(const LayerNormGradientRows& r, int64_t first) {
  const int64_t columns = r.columns, offset = first * columns;
  const X* x = static_cast<const X*>(r.sum.data) + offset;
  const Y* dy = static_cast<const Y*>(r.dy.data) + offset;
  const X* dsum = r.dsum.data == nullptr ? nullptr : static_cast<const X*>(r.dsum.data) + offset;
  X* dx = static_cast<X*>(r.dx.data) + offset;
  Bf16* narrowed = r.narrowed == nullptr ? nullptr : r.narrowed + offset;
  float *dweight = r.sums, *dbias = r.sums + columns;
  float* dshift = r.shift ? r.sums + 2 * columns : nullptr;

  F32 mean[kCount], inverse[kCount];
  for (int64_t row = 0; row < kCount; ++row) {
    mean[row] = fill(r.mean[first + row]);
    inverse[row] = fill(r.inverse[first + row]);
  }
  // For each row the sum of g = dy * weight, and that of its product with the normal row.
  double totals[2 * kCount];
  sum_columns<2 * kCount>(columns, totals, [&](int64_t i, auto lanes, F32* sums) {
    const F32 weight = lanes.get(r.weight + i);
    F32 products[kCount], ds[kCount];
    for (int64_t row = 0; row < kCount; ++row) {
      const F32 d = lanes.get(dy + row * columns + i);
      const F32 normal = (lanes.get(x + row * columns + i) - mean[row]) * inverse[row];
      products[row] = d * normal;
      ds[row] = d;
      sums[2 * row] = fma(d, weight, sums[2 * row]);
      sums[2 * row + 1] = fma(products[row], weight, sums[2 * row + 1]);
    }
    lanes.put(dweight + i, lanes.get(dweight + i) + sum_of(products));
    lanes.put(dbias + i, lanes.get(dbias + i) + sum_of(ds));
  });
  F32 share[kCount], slope[kCount];
  for (int64_t row = 0; row < kCount; ++row) {
    const auto count = static_cast<double>(columns);
    share[row] = fill(r.rms ? 0 : static_cast<float>(totals[2 * row] / count));
    slope[row] = fill(static_cast<float>(totals[2 * row + 1] / count));
  }
  over_vectors(0, columns, [&](int64_t i, auto lanes) {
    const F32 weight = lanes.get(r.weight + i);
    F32 results[kCount];
    for (int64_t row = 0; row < kCount; ++row) {
      const int64_t at = row * columns + i;
      const F32 normal = (lanes.get(x + at) - mean[row]) * inverse[row];
      const F32 g = fma(lanes.get(dy + at), weight, fill(0) - share[row]);
      F32 result = fnma(normal, slope[row], g) * inverse[row];
      if (dsum != nullptr) result = result + lanes.get(dsum + at);
      lanes.put(dx + at, result);
      if (narrowed != nullptr) lanes.put(narrowed + at, result);
      results[row] = result;
    }
    if (dshift != nullptr) lanes.put(dshift + i, lanes.get(dshift + i) + sum_of(results));
  });
}

template <typename X, typename Y>
void backward(const LayerNormGradientRows& r) {
  for (int64_t i = 0; i < (r.shift ? 3 : 2) * r.columns; ++i) r.sums[i] = 0;
  int64_t row = 0;
  for (; row + kRows <= r.rows; row += kRows) backward_rows<kRows, X, Y>(r, row);
  for (; row < r.rows; ++row) backward_rows<1, X, Y>(r, row);
}

void any_backward(const LayerNormGradientRows& r) {
  if (r.sum.bf16) return r.dy.bf16 ? backward<Bf16, Bf16>(r) : backward<Bf16, float>(r);
  return r.dy.bf16 ? backward<float, Bf16>(r) : backward<float, float>(r);
}

}  // namespace

template <>
LayerNormKernels make_kernels<LayerNormKernels, kIsa>() {
  return {.forward = any_forward, .backward = any_backward};
}

}  // namespace gallop::kernel
