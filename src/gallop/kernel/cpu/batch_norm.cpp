#include "gallop/kernel/cpu/batch_norm.h"

#include "gallop/kernel/cpu/math.h"
#include "gallop/kernel/cpu/simd.h"
#include "gallop/kernel/cpu/vectors.h"

namespace gallop::kernel {
namespace {

// Rows of a turn: their additions need not wait for each other, and constants and sums of a column
// are loaded once.
constexpr int64_t kTurn = 8;
static_assert(kBatchNormChunk % kTurn == 0);

template <int64_t kCount>
struct Rows {};

// body(rows, lanes, row, column) for each vector of `width` columns. Always inline, as bodies: out
// of line they would read their pointers again after each store.
template <int64_t kCount, typename Body>
[[gnu::always_inline]] inline void over_columns(Rows<kCount> rows, int64_t row, int64_t width,
                                                const Body& body) {
  int64_t column = 0;
  for (; column + kLanes <= width; column += kLanes) body(rows, Whole{}, row, column);
  if (column < width) body(rows, Part{width - column}, row, column);
}

// The same for rows [from, to).
template <typename Body>
[[gnu::always_inline]] inline void over_rows(int64_t from, int64_t to, int64_t width,
                                             const Body& body) {
  int64_t row = from;
  for (; row + kTurn <= to; row += kTurn) over_columns(Rows<kTurn>{}, row, width, body);
  for (; row < to; ++row) over_columns(Rows<1>{}, row, width, body);
}

// over_rows for all of a part.
template <typename Number, typename Body>
[[gnu::always_inline]] inline void over_part(const BatchNormPart<Number>& part, const Body& body) {
  const int64_t rows = part.count / part.columns;
  over_rows(0, rows, part.columns, body);
  over_rows(rows, rows + 1, part.count % part.columns, body);
}

// over_rows chunk by chunk, and after each chunk end(its rows, its columns).
template <typename Number, typename Body, typename End>
[[gnu::always_inline]] inline void over_chunks(const BatchNormPart<Number>& part, const Body& body,
                                               const End& end) {
  const int64_t rows = part.count / part.columns;
  for (int64_t from = 0; from < rows; from += kBatchNormChunk) {
    const int64_t to = from + kBatchNormChunk < rows ? from + kBatchNormChunk : rows;
    over_rows(from, to, part.columns, body);
    end(to - from, part.columns);
  }
  if (const int64_t width = part.count % part.columns; width > 0) {
    over_rows(rows, rows + 1, width, body);
    end(1, width);
  }
}

inline void clear(float* p, int64_t count) {
  for (int64_t i = 0; i < count; ++i) p[i] = 0;
}

template <typename Number>
void moments(const BatchNormPart<Number>& part, const float* origin, float* scratch, double* sums) {
  // A chunk's sums are of x - near, with near the mean of the chunk before: fp32 loses no digits
  // then, however far the numbers are from 0.
  const int64_t columns = part.columns;
  float* const first = scratch;
  float* const second = scratch + columns;
  float* const near = scratch + 2 * columns;
  clear(scratch, 3 * columns);
  over_columns(Rows<1>{}, 0, part.count < columns ? part.count : columns,
               [&](auto, auto lanes, int64_t, int64_t column) {
                 lanes.put(near + column, lanes.get(part.x + column));
               });
  const Number* const all = part.x;
  const auto body = [=]<int64_t kCount>(Rows<kCount>, auto lanes, int64_t row, int64_t column) {
    const Number* const x = all + row * columns + column;
    const F32 center = lanes.get(near + column);
    F32 d[kCount];
    for (int64_t i = 0; i < kCount; ++i) d[i] = lanes.get(x + i * columns) - center;
    F32 squares = d[0] * d[0];
    for (int64_t i = 1; i < kCount; ++i) squares = fma(d[i], d[i], squares);
    for (int64_t half = kCount / 2; half > 0; half /= 2) {
      for (int64_t i = 0; i < half; ++i) d[i] = d[i] + d[i + half];
    }
    lanes.put(first + column, lanes.get(first + column) + d[0]);
    lanes.put(second + column, lanes.get(second + column) + squares);
  };
  over_chunks(part, body, [&](int64_t rows, int64_t width) {
    const auto n = static_cast<double>(rows);
    const float share = 1 / static_cast<float>(rows);
    double* const squares = sums + columns;
    for (int64_t i = 0; i < width; ++i) {
      const double shift = static_cast<double>(near[i]) - static_cast<double>(origin[i]);
      const double sum = static_cast<double>(first[i]), moved = sum + n * shift;
      sums[i] += moved;
      squares[i] += static_cast<double>(second[i]) + shift * (sum + moved);
      near[i] += share * first[i];
    }
    clear(scratch, 2 * columns);
  });
}

// In these orders of arguments NaN stays NaN.
template <BatchNormActivation kActivation>
[[gnu::always_inline]] inline F32 activated(F32 z) {
  if constexpr (kActivation == BatchNormActivation::kRelu) {
    return max(fill(0), z);
  } else if constexpr (kActivation == BatchNormActivation::kRelu6) {
    return min(fill(6), max(fill(0), z));
  } else if constexpr (kActivation == BatchNormActivation::kSilu) {
    return z * sigmoid(z);
  } else if constexpr (kActivation == BatchNormActivation::kHardswish) {
    return z * min(fill(6), max(fill(0), z + fill(3))) * fill(1.0F / 6);
  } else {
    return z;
  }
}

// The gradient of z from that of the activation.
template <ActivationGradient kActivation>
[[gnu::always_inline]] inline F32 before_activation(F32 g, F32 z) {
  if constexpr (kActivation == ActivationGradient::kRelu) {
    return select(z > fill(0), g, fill(0));
  } else if constexpr (kActivation == ActivationGradient::kRelu6) {
    return select(z > fill(0), select(fill(6) > z, g, fill(0)), fill(0));
  } else if constexpr (kActivation == ActivationGradient::kSilu) {
    const F32 s = sigmoid(z);
    return g * s * fma(z, fill(1) - s, fill(1));
  } else if constexpr (kActivation == ActivationGradient::kHardswish) {
    const F32 within = select(fill(3) > z, fma(z, fill(1.0F / 3), fill(0.5F)), fill(1));
    return select(z > fill(-3), g * within, fill(0));
  } else {
    return g;
  }
}

constexpr bool is_from_x(ActivationGradient activation) {
  return activation > ActivationGradient::kPositive;
}

template <BatchNormActivation kActivation, bool kResidual, bool kPositive, typename Number>
void apply_form(const BatchNormPart<Number>& part, const BatchNormColumns& constants) {
  const int64_t columns = part.columns, words = (columns + kLanes - 1) / kLanes;
  const BatchNormPart<Number> p = part;
  const BatchNormColumns c = constants;
  over_part(p, [=]<int64_t kCount>(Rows<kCount>, auto lanes, int64_t row, int64_t column) {
    const F32 mean = lanes.get(c.mean + column), scale = lanes.get(c.scale + column);
    const F32 shift = lanes.get(c.shift + column);
    for (int64_t i = 0; i < kCount; ++i) {
      const int64_t at = (row + i) * columns + column;
      F32 y = fma(lanes.get(p.x + at) - mean, scale, shift);
      if constexpr (kResidual) y = y + lanes.get(p.residual + at);
      if constexpr (kPositive) {
        p.positive[(row + i) * words + column / kLanes] = bits(y > fill(0));
      }
      lanes.put(p.y + at, activated<kActivation>(y));
    }
  });
}

template <typename Number>
void apply(const BatchNormPart<Number>& part, const BatchNormColumns& columns,
           BatchNormActivation activation) {
  using enum BatchNormActivation;
  const bool residual = part.residual != nullptr;
  if (part.positive != nullptr) {
    return residual ? apply_form<kRelu, true, true>(part, columns)
                    : apply_form<kRelu, false, true>(part, columns);
  }
  switch (activation) {
    case kNone:
      return residual ? apply_form<kNone, true, false>(part, columns)
                      : apply_form<kNone, false, false>(part, columns);
    case kRelu:
      return residual ? apply_form<kRelu, true, false>(part, columns)
                      : apply_form<kRelu, false, false>(part, columns);
    case kRelu6: return apply_form<kRelu6, false, false>(part, columns);
    case kSilu: return apply_form<kSilu, false, false>(part, columns);
    case kHardswish: return apply_form<kHardswish, false, false>(part, columns);
  }
}

template <ActivationGradient kActivation, bool kMore, bool kWrite, typename Number>
void gradient_sums_form(const BatchNormPart<Number>& part, const BatchNormColumns& constants,
                        float* scratch, double* sums) {
  const int64_t columns = part.columns, words = (columns + kLanes - 1) / kLanes;
  float* const first = scratch;
  float* const second = scratch + columns;
  clear(scratch, 2 * columns);
  const BatchNormPart<Number> p = part;
  const BatchNormColumns c = constants;
  const auto body = [=]<int64_t kCount>(Rows<kCount>, auto lanes, int64_t row, int64_t column) {
    const F32 mean = lanes.get(c.mean + column);
    F32 g[kCount], product = fill(0);
    for (int64_t i = 0; i < kCount; ++i) {
      const int64_t at = (row + i) * columns + column;
      const F32 d = lanes.get(p.x + at) - mean;
      g[i] = lanes.get(p.dy + at);
      if constexpr (kMore) g[i] = g[i] + lanes.get(p.more_dy + at);
      if constexpr (is_from_x(kActivation)) {
        const F32 z = fma(d, lanes.get(c.scale + column), lanes.get(c.shift + column));
        g[i] = before_activation<kActivation>(g[i], z);
      } else if constexpr (kActivation == ActivationGradient::kPositive) {
        g[i] = select(mask_of(p.positive[(row + i) * words + column / kLanes]), g[i], fill(0));
      }
      if constexpr (kWrite) lanes.put(p.g + at, g[i]);
      product = fma(g[i], d, product);
    }
    for (int64_t half = kCount / 2; half > 0; half /= 2) {
      for (int64_t i = 0; i < half; ++i) g[i] = g[i] + g[i + half];
    }
    lanes.put(first + column, lanes.get(first + column) + g[0]);
    lanes.put(second + column, lanes.get(second + column) + product);
  };
  over_chunks(p, body, [&](int64_t, int64_t width) {
    double* const products = sums + columns;
    for (int64_t i = 0; i < width; ++i) {
      sums[i] += static_cast<double>(first[i]);
      products[i] += static_cast<double>(second[i]);
    }
    clear(scratch, 2 * columns);
  });
}

template <ActivationGradient kActivation, typename Number>
void gradient_sums_of(const BatchNormPart<Number>& part, const BatchNormColumns& c, float* scratch,
                      double* sums) {
  const bool more = part.more_dy != nullptr;
  if (part.g != nullptr) {
    more ? gradient_sums_form<kActivation, true, true>(part, c, scratch, sums)
         : gradient_sums_form<kActivation, false, true>(part, c, scratch, sums);
  } else {
    more ? gradient_sums_form<kActivation, true, false>(part, c, scratch, sums)
         : gradient_sums_form<kActivation, false, false>(part, c, scratch, sums);
  }
}

template <typename Number>
void gradient_sums(const BatchNormPart<Number>& part, const BatchNormColumns& c,
                   ActivationGradient activation, float* scratch, double* sums) {
  using enum ActivationGradient;
  switch (activation) {
    case kNone: return gradient_sums_of<kNone>(part, c, scratch, sums);
    case kPositive: return gradient_sums_of<kPositive>(part, c, scratch, sums);
    case kRelu: return gradient_sums_of<kRelu>(part, c, scratch, sums);
    case kRelu6: return gradient_sums_of<kRelu6>(part, c, scratch, sums);
    case kSilu: return gradient_sums_of<kSilu>(part, c, scratch, sums);
    case kHardswish: return gradient_sums_of<kHardswish>(part, c, scratch, sums);
  }
}

template <ActivationGradient kActivation, typename Number>
void gradient_form(const BatchNormPart<Number>& part, const BatchNormColumns& constants) {
  const int64_t columns = part.columns;
  const BatchNormPart<Number> p = part;
  const BatchNormColumns c = constants;
  over_part(p, [=]<int64_t kCount>(Rows<kCount>, auto lanes, int64_t row, int64_t column) {
    const F32 mean = lanes.get(c.mean + column), keep = lanes.get(c.keep + column);
    const F32 slope = lanes.get(c.slope + column), add = lanes.get(c.add + column);
    for (int64_t i = 0; i < kCount; ++i) {
      const int64_t at = (row + i) * columns + column;
      const F32 d = lanes.get(p.x + at) - mean;
      F32 g = lanes.get(p.dy + at);
      if constexpr (is_from_x(kActivation)) {
        const F32 z = fma(d, lanes.get(c.scale + column), lanes.get(c.shift + column));
        g = before_activation<kActivation>(g, z);
      }
      lanes.put(p.dx + at, fma(g, keep, fma(d, slope, add)));
    }
  });
}

template <typename Number>
void gradient(const BatchNormPart<Number>& part, const BatchNormColumns& c,
              ActivationGradient activation) {
  using enum ActivationGradient;
  switch (activation) {
    case kNone:
    case kPositive: return gradient_form<kNone>(part, c);
    case kRelu: return gradient_form<kRelu>(part, c);
    case kRelu6: return gradient_form<kRelu6>(part, c);
    case kSilu: return gradient_form<kSilu>(part, c);
    case kHardswish: return gradient_form<kHardswish>(part, c);
  }
}

template <typename Number>
BatchNormKernels<Number> kernels() {
  return {.moments = moments<Number>,
          .apply = apply<Number>,
          .gradient_sums = gradient_sums<Number>,
          .gradient = gradient<Number>};
}

}  // namespace

template <>
BatchNormKernels<float> make_kernels<BatchNormKernels<float>, kIsa>() {
  return kernels<float>();
}
template <>
BatchNormKernels<Bf16> make_kernels<BatchNormKernels<Bf16>, kIsa>() {
  return kernels<Bf16>();
}

}  // namespace gallop::kernel
