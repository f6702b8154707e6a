#include "gallop/kernel/cpu/linear.h"

#include "gallop/kernel/cpu/vectors.h"

namespace gallop::kernel {
namespace {

template <typename Number>
Number* row_of(const AnyMatrix& matrix, int64_t i) {
  return static_cast<Number*>(matrix.data) + i * matrix.stride;
}

// 16 rows of y from row i on, or as many as there are, in columns from j on.
template <typename To, typename Lanes>
inline void finish_rows(const F32* rows, int64_t i, int64_t j, F32 bias, bool relu,
                        const AnyMatrix& y, Lanes lanes) {
  const int64_t count = y.rows - i < kLanes ? y.rows - i : kLanes;
  for (int64_t r = 0; r < count; ++r) {
    const F32 sum = rows[r] + bias;
    lanes.put(row_of<To>(y, i + r) + j, relu ? max(fill(0), sum) : sum);
  }
}

template <typename To>
void finish_to(const float* from, int64_t from_stride, const float* bias, bool relu,
               const AnyMatrix& y) {
  F32 block[kLanes];
  for (int64_t i = 0; i < y.rows; i += kLanes) {
    over_vectors(0, y.columns, [&](int64_t j, auto lanes) {
      load_block(from + j * from_stride + i, from_stride, block);
      transpose(block);
      const F32 more = bias == nullptr ? fill(0) : lanes.get(bias + j);
      finish_rows<To>(block, i, j, more, relu, y, lanes);
    });
  }
}

void finish(const float* from, int64_t from_stride, const float* bias, bool relu,
            const AnyMatrix& y) {
  y.bf16 ? finish_to<Bf16>(from, from_stride, bias, relu, y)
         : finish_to<float>(from, from_stride, bias, relu, y);
}

// Rows whose sum is one summand of the whole. Sums of sums err less.
constexpr int64_t kSummedRows = 32;

// Columns [j, j + kVectors * kLanes), of which `lanes` may be fewer where kVectors is 1.
template <int64_t kVectors, typename Number, typename Lanes>
inline void gradient_columns(const AnyMatrix& dy, const AnyMatrix& y, Number* dz, int64_t stride,
                             float* sums, int64_t j, Lanes lanes) {
  F32 total[kVectors], part[kVectors];
  for (int64_t v = 0; v < kVectors; ++v) total[v] = part[v] = fill(0);
  for (int64_t i = 0; i < dy.rows; ++i) {
    for (int64_t v = 0; v < kVectors; ++v) {
      const int64_t at = j + v * kLanes;
      F32 d = lanes.get(row_of<Number>(dy, i) + at);
      if (y.data != nullptr) {
        d = select(lanes.get(row_of<Number>(y, i) + at) > fill(0), d, fill(0));
      }
      store(dz + i * stride + at, d);
      part[v] = part[v] + d;
    }
    if ((i + 1) % kSummedRows != 0) continue;
    for (int64_t v = 0; v < kVectors; ++v) {
      total[v] = total[v] + part[v];
      part[v] = fill(0);
    }
  }
  if (sums == nullptr) return;
  for (int64_t v = 0; v < kVectors; ++v) lanes.put(sums + j + v * kLanes, total[v] + part[v]);
}

template <typename Number>
void gradient(const AnyMatrix& dy, const AnyMatrix& y, Number* dz, int64_t padded_rows,
              int64_t stride, float* sums) {
  constexpr int64_t kVectors = 8;
  int64_t j = 0;
  for (; j + kVectors * kLanes <= dy.columns; j += kVectors * kLanes) {
    gradient_columns<kVectors>(dy, y, dz, stride, sums, j, Whole());
  }
  over_vectors(j, dy.columns, [&](int64_t at, auto lanes) {
    gradient_columns<1>(dy, y, dz, stride, sums, at, lanes);
  });
  const int64_t pad = kGemmPad<Number>, columns = (dy.columns + pad - 1) / pad * pad;
  for (j = (dy.columns + kLanes - 1) / kLanes * kLanes; j < columns; j += kLanes) {
    for (int64_t i = 0; i < dy.rows; ++i) store(dz + i * stride + j, fill(0));
  }
  for (int64_t i = dy.rows; i < padded_rows; ++i) {
    for (j = 0; j < columns; j += kLanes) store(dz + i * stride + j, fill(0));
  }
}

template <typename To>
void write_to(const float* from, int64_t from_stride, const AnyMatrix& to) {
  for (int64_t i = 0; i < to.rows; ++i) {
    over_vectors(0, to.columns, [&](int64_t j, auto lanes) {
      lanes.put(row_of<To>(to, i) + j, lanes.get(from + i * from_stride + j));
    });
  }
}

void write(const float* from, int64_t from_stride, const AnyMatrix& to) {
  to.bf16 ? write_to<Bf16>(from, from_stride, to) : write_to<float>(from, from_stride, to);
}

template <typename Number>
LinearKernels<Number> all() {
  return {.finish = finish, .gradient = gradient<Number>, .write = write};
}

}  // namespace

template <>
LinearKernels<float> make_kernels<LinearKernels<float>, kIsa>() {
  return all<float>();
}

template <>
LinearKernels<Bf16> make_kernels<LinearKernels<Bf16>, kIsa>() {
  return all<Bf16>();
}

}  // namespace gallop::kernel
