#include "gallop/kernel/cpu/attention.h"

#include "gallop/kernel/cpu/integers.h"
#include "gallop/kernel/cpu/math.h"
#include "gallop/kernel/cpu/rotary.h"
#include "gallop/kernel/cpu/vectors.h"

namespace gallop::kernel {
namespace {

inline F32 iota() {
  float lanes[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) lanes[i] = static_cast<float>(i);
  return load(lanes);
}

template <typename Number>
void copy(const Matrix<const Number>& from, const float* cosines, Number* to, int64_t to_stride) {
  for (int64_t i = 0; i < from.rows; ++i) {
    const Number* row = from.row(i);
    Number* out = to + i * to_stride;
    if (cosines != nullptr) {
      rotate_row<false>(row, cosines + i * from.columns, from.columns, out);
    } else {
      over_vectors(0, from.columns,
                   [&](int64_t j, auto lanes) { lanes.put(out + j, lanes.get(row + j)); });
    }
  }
}

template <typename Number>
void softmax(const Matrix<const float>& scores, float scale, int64_t first_visible,
             const Matrix<Number>& weights, float* sums, float* log_sums) {
  for (int64_t i = 0; i < scores.rows; ++i) {
    const float* row = scores.row(i);
    Number* out = weights.row(i);
    const int64_t visible = least(scores.columns, first_visible + i);
    F32 top = fill(-__builtin_inff());
    int64_t j = 0;
    for (; j + kLanes <= visible; j += kLanes) top = max(top, load(row + j));
    float top_one = largest(top);
    for (; j < visible; ++j) top_one = row[j] > top_one ? row[j] : top_one;

    const F32 factor = fill(scale), shift = fill(scale * top_one);
    F32 total = fill(0);
    for (j = 0; j + kLanes <= visible; j += kLanes) {
      const F32 weight = exp(fma(load(row + j), factor, fill(0) - shift));
      total = total + weight;
      store(out + j, weight);
    }
    if (const int64_t left = visible - j; left > 0) {
      const F32 weight = select(fill(static_cast<float>(left)) > iota(),
                                exp(fma(load(row + j, left), factor, fill(0) - shift)), fill(0));
      total = total + weight;
      store(out + j, weight, left);
    }
    for (j = visible; j < weights.columns; ++j) out[j] = Number{0};
    sums[i] = sum(total);
    log_sums[i] = scale * top_one;
  }
  over_vectors(0, scores.rows, [&](int64_t i, auto lanes) {
    lanes.put(log_sums + i, lanes.get(log_sums + i) + log(lanes.get(sums + i)));
  });
}

template <typename Number>
void divide(const float* from, int64_t from_stride, const float* sums, const Matrix<Number>& to) {
  for (int64_t i = 0; i < to.rows; ++i) {
    const F32 factor = fill(1 / sums[i]);
    over_vectors(0, to.columns, [&](int64_t j, auto lanes) {
      lanes.put(to.row(i) + j, lanes.get(from + i * from_stride + j) * factor);
    });
  }
}

template <typename Number>
void dot(const Matrix<const Number>& a, const Matrix<const Number>& b, float* sums) {
  for (int64_t i = 0; i < a.rows; ++i) {
    F32 total = fill(0);
    over_vectors(0, a.columns, [&](int64_t j, auto lanes) {
      total = fma(lanes.get(a.row(i) + j), lanes.get(b.row(i) + j), total);
    });
    sums[i] = sum(total);
  }
}

inline void store_vnni(Bf16* to, int64_t stride, int64_t row, int64_t column, const F32& even,
                       const F32& odd) {
  store_interleaved(to + row * stride + 2 * column, even, odd, kLanes);
}
inline void store_vnni(float* to, int64_t stride, int64_t row, int64_t column, const F32& even,
                       const F32& odd) {
  store(to + row * stride + column, even);
  store(to + (row + 1) * stride + column, odd);
}

template <typename Number>
void backward(const Matrix<const float>& scores, const float* dweights, float scale,
              int64_t first_visible, const float* log_sums, const float* dots,
              const Matrix<Number>& padded, Number* dscores, Number* dscores_vnni) {
  const int64_t stride = padded.stride;
  const F32 factor = fill(scale);
  for (int64_t j = 0; j < padded.columns; j += kLanes) {
    const int64_t left = scores.columns - j;
    const int64_t count = least(left > 0 ? left : 0, kLanes);
    const F32 log_sum = load(log_sums + j, count), dot = load(dots + j, count);
    const Mask inside = fill(static_cast<float>(left)) > iota();
    // Key i is seen by column j + lane where i < first_visible + j + lane.
    const F32 lanes = iota() + fill(static_cast<float>(first_visible + j));
    const auto dscores_of = [&](int64_t i) -> F32 {
      const int64_t at = i * stride + j;
      F32 weight = fill(0), dscore = fill(0);
      if (i < scores.rows && left > 0) {
        weight = exp(fma(load(scores.data + at), factor, fill(0) - log_sum));
        if (i >= first_visible + j) {
          weight = select(lanes > fill(static_cast<float>(i)), weight, fill(0));
        }
        if (left < kLanes) weight = select(inside, weight, fill(0));
        dscore = weight * factor * (load(dweights + at) - dot);
      }
      store(padded.data + at, weight);
      store(dscores + at, dscore);
      return dscore;
    };
    for (int64_t i = 0; i < padded.rows; i += 2) {
      const F32 even = dscores_of(i), odd = dscores_of(i + 1);
      store_vnni(dscores_vnni, stride, i, j, even, odd);
    }
  }
}

template <typename Number>
inline void write_row(const float* from, const float* cosines, int64_t width, Number* to) {
  if (cosines != nullptr) return rotate_row<true>(from, cosines, width, to);
  over_vectors(0, width, [&](int64_t j, auto lanes) { lanes.put(to + j, lanes.get(from + j)); });
}

template <typename Number>
void write(const float* from, int64_t from_stride, const float* cosines, const Matrix<Number>& to) {
  for (int64_t i = 0; i < to.rows; ++i) {
    write_row(from + i * from_stride, cosines == nullptr ? nullptr : cosines + i * to.columns,
              to.columns, to.row(i));
  }
}

template <typename Number>
void write_transposed(const float* from, int64_t from_stride, const float* cosines,
                      const Matrix<Number>& to) {
  float rows[kLanes][kMaxHeadWidth];
  F32 block[kLanes];
  for (int64_t i = 0; i < to.rows; i += kLanes) {
    for (int64_t j = 0; j < to.columns; j += kLanes) {
      load_block(from + j * from_stride + i, from_stride, block);
      transpose(block);
      store_block(rows[0] + j, kMaxHeadWidth, block);
    }
    for (int64_t k = 0; k < least(kLanes, to.rows - i); ++k) {
      write_row(rows[k], cosines == nullptr ? nullptr : cosines + (i + k) * to.columns, to.columns,
                to.row(i + k));
    }
  }
}

template <typename Number>
AttentionKernels<Number> all() {
  return {.copy = copy<Number>,
          .softmax = softmax<Number>,
          .divide = divide<Number>,
          .dot = dot<Number>,
          .backward = backward<Number>,
          .write = write<Number>,
          .write_transposed = write_transposed<Number>};
}

}  // namespace

template <>
AttentionKernels<float> make_kernels<AttentionKernels<float>, kIsa>() {
  return all<float>();
}

template <>
AttentionKernels<Bf16> make_kernels<AttentionKernels<Bf16>, kIsa>() {
  return all<Bf16>();
}

}  // namespace gallop::kernel
