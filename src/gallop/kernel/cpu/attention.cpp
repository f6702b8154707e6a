#include "gallop/kernel/cpu/attention.h"

#include "gallop/kernel/cpu/math.h"

namespace gallop::kernel {
namespace {

constexpr int64_t kMaxWidth = 256;

inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

inline F32 iota() {
  float lanes[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) lanes[i] = static_cast<float>(i);
  return load(lanes);
}

// Whole vectors without the cost of a mask.
template <typename Number>
inline F32 load_at_most(const Number* p, int64_t left) {
  return left >= kLanes ? load(p) : load(p, left);
}
template <typename Number>
inline void store_at_most(Number* p, const F32& a, int64_t left) {
  if (left >= kLanes) {
    store(p, a);
  } else {
    store(p, a, left);
  }
}

// Two bf16 as they lie side by side.
inline uint32_t two(const Bf16* p) {
  uint32_t bits;
  __builtin_memcpy(&bits, p, sizeof bits);
  return bits;
}

void pair(const Matrix<const Bf16>& from, Bf16* to) {
  for (int64_t i = 0; i < from.rows; i += 2) {
    const Bf16* even = from.row(i);
    Bf16* out = to + i * from.columns;
    if (i + 1 < from.rows) {
      const Bf16* odd = from.row(i + 1);
      for (int64_t j = 0; j < from.columns; ++j) {
        out[2 * j] = even[j];
        out[2 * j + 1] = odd[j];
      }
    } else {
      for (int64_t j = 0; j < from.columns; ++j) {
        out[2 * j] = even[j];
        out[2 * j + 1] = Bf16{0};
      }
    }
  }
}

void pair(const Matrix<const float>& from, float* to) {
  for (int64_t i = 0; i < from.rows; ++i) {
    for (int64_t j = 0; j < from.columns; ++j) to[i * from.columns + j] = from.row(i)[j];
  }
}

// In blocks whose lines stay in the first cache.
template <typename Number, typename Copy>
inline void transpose_blocks(const Matrix<const Number>& from, int64_t columns, const Copy& copy) {
  for (int64_t i0 = 0; i0 < from.rows; i0 += kLanes) {
    const int64_t i1 = least(from.rows, i0 + kLanes);
    for (int64_t j = 0; j < columns; ++j) {
      for (int64_t i = i0; i < i1; ++i) copy(i, j);
    }
  }
}

void transpose_and_pair(const Matrix<const Bf16>& from, Bf16* to) {
  transpose_blocks(from, from.columns / 2, [&](int64_t i, int64_t j) {
    const uint32_t bits = two(from.row(i) + 2 * j);
    __builtin_memcpy(to + 2 * (j * from.rows + i), &bits, sizeof bits);
  });
}

template <typename Number>
void transpose(const Matrix<const Number>& from, Number* to, int64_t stride) {
  transpose_blocks(from, from.columns,
                   [&](int64_t i, int64_t j) { to[j * stride + i] = from.row(i)[j]; });
}

void transpose_and_pair(const Matrix<const float>& from, float* to) {
  transpose(from, to, from.rows);
}

// Turns by the angle of `cosines`, or back for kBack.
template <bool kBack, typename From, typename To>
inline void rotate_row(const From* from, const float* cosines, int64_t width, To* to) {
  const int64_t half = width / 2;
  for (int64_t i = 0; i < half; i += kLanes) {
    const int64_t left = half - i;
    const F32 cosine = load_at_most(cosines + i, left);
    F32 sine = load_at_most(cosines + half + i, left);
    if (kBack) sine = fill(0) - sine;
    const F32 a = load_at_most(from + i, left), b = load_at_most(from + half + i, left);
    store_at_most(to + i, fnma(b, sine, a * cosine), left);
    store_at_most(to + half + i, fma(a, sine, b * cosine), left);
  }
}

template <typename Number>
void rotate(const Matrix<const Number>& from, const float* cosines, Number* to) {
  for (int64_t i = 0; i < from.rows; ++i) {
    rotate_row<false>(from.row(i), cosines + i * from.columns, from.columns, to + i * from.columns);
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
    log_sums[i] = scale * top_one + __builtin_logf(sums[i]);
  }
}

template <typename Number>
void divide(const Matrix<const float>& from, const float* sums, const Matrix<Number>& to) {
  for (int64_t i = 0; i < from.rows; ++i) {
    const F32 factor = fill(1 / sums[i]);
    for (int64_t j = 0; j < from.columns; j += kLanes) {
      const int64_t left = from.columns - j;
      store_at_most(to.row(i) + j, load_at_most(from.row(i) + j, left) * factor, left);
    }
  }
}

template <typename Number>
void dot(const Matrix<const Number>& a, const Matrix<const Number>& b, float* sums) {
  for (int64_t i = 0; i < a.rows; ++i) {
    F32 total = fill(0);
    for (int64_t j = 0; j < a.columns; j += kLanes) {
      const int64_t left = a.columns - j;
      total = fma(load_at_most(a.row(i) + j, left), load_at_most(b.row(i) + j, left), total);
    }
    sums[i] = sum(total);
  }
}

// Where the second row is missing, zeros.
inline void store_paired(Bf16* to, int64_t columns, int64_t row, int64_t column, const F32& even,
                         const F32& odd, int64_t left) {
  store_woven(to + row * columns + 2 * column, even, odd, left);
}
inline void store_paired(float* /*to*/, int64_t /*columns*/, int64_t /*row*/, int64_t /*column*/,
                         const F32& /*even*/, const F32& /*odd*/, int64_t /*left*/) {}

template <typename Number>
void backward(const Matrix<const float>& scores, const float* dweights, float scale,
              int64_t first_visible, const float* log_sums, const float* dots,
              const Matrix<Number>& weights, Number* dscores, Number* dscores_paired) {
  const int64_t columns = scores.columns;
  const F32 factor = fill(scale);
  for (int64_t j = 0; j < columns; j += kLanes) {
    const int64_t left = columns - j;
    const F32 log_sum = load_at_most(log_sums + j, left), dot = load_at_most(dots + j, left);
    // Key i is seen by column j + lane where i < first_visible + j + lane.
    const F32 lanes = iota() + fill(static_cast<float>(first_visible + j));
    const auto dscores_of = [&](int64_t i) -> F32 {
      const F32 score = load_at_most(scores.row(i) + j, left);
      F32 weight = exp(fma(score, factor, fill(0) - log_sum));
      if (i >= first_visible + j) {
        weight = select(lanes > fill(static_cast<float>(i)), weight, fill(0));
      }
      const F32 dweight = load_at_most(dweights + i * columns + j, left);
      const F32 dscore = weight * factor * (dweight - dot);
      store_at_most(weights.row(i) + j, weight, left);
      store_at_most(dscores + i * weights.stride + j, dscore, left);
      return dscore;
    };
    int64_t i = 0;
    for (; i + 2 <= scores.rows; i += 2) {
      const F32 even = dscores_of(i), odd = dscores_of(i + 1);
      store_paired(dscores_paired, columns, i, j, even, odd, left);
    }
    if (i < scores.rows) {
      store_paired(dscores_paired, columns, i, j, dscores_of(i), fill(0), left);
    }
  }
}

template <typename Number>
inline void write_row(const float* from, const float* cosines, int64_t width, Number* to) {
  if (cosines != nullptr) return rotate_row<true>(from, cosines, width, to);
  for (int64_t j = 0; j < width; j += kLanes) {
    const int64_t left = width - j;
    store_at_most(to + j, load_at_most(from + j, left), left);
  }
}

template <typename Number>
void write(const Matrix<const float>& from, const float* cosines, const Matrix<Number>& to) {
  for (int64_t i = 0; i < from.rows; ++i) {
    write_row(from.row(i), cosines == nullptr ? nullptr : cosines + i * from.columns, from.columns,
              to.row(i));
  }
}

template <typename Number>
void write_transposed(const Matrix<const float>& from, const float* cosines,
                      const Matrix<Number>& to) {
  float rows[kLanes][kMaxWidth];
  for (int64_t i0 = 0; i0 < to.rows; i0 += kLanes) {
    const int64_t count = least(kLanes, to.rows - i0);
    for (int64_t j = 0; j < to.columns; ++j) {
      for (int64_t i = 0; i < count; ++i) rows[i][j] = from.row(j)[i0 + i];
    }
    for (int64_t i = 0; i < count; ++i) {
      write_row(rows[i], cosines == nullptr ? nullptr : cosines + (i0 + i) * to.columns, to.columns,
                to.row(i0 + i));
    }
  }
}

template <typename Number>
AttentionBodies<Number> all() {
  return {.pair = pair,
          .transpose_and_pair = transpose_and_pair,
          .transpose = transpose<Number>,
          .rotate = rotate<Number>,
          .softmax = softmax<Number>,
          .divide = divide<Number>,
          .dot = dot<Number>,
          .backward = backward<Number>,
          .write = write<Number>,
          .write_transposed = write_transposed<Number>};
}

}  // namespace

template <>
AttentionBodies<float> make_bodies<AttentionBodies<float>, kIsa>() {
  return all<float>();
}

template <>
AttentionBodies<Bf16> make_bodies<AttentionBodies<Bf16>, kIsa>() {
  return all<Bf16>();
}

}  // namespace gallop::kernel
