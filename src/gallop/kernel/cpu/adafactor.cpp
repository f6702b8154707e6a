#include "gallop/kernel/cpu/adafactor.h"

#include "gallop/kernel/cpu/simd_ieee.h"
#include "gallop/kernel/cpu/vectors.h"

namespace gallop::kernel {
namespace {

/// A sum in four vectors, so that an addition need not wait for the one before it.
struct Sum {
  F32 parts[4] = {fill(0), fill(0), fill(0), fill(0)};
  void add_square(int64_t i, F32 a) {
    F32& part = parts[i / kLanes % 4];
    part = fma(a, a, part);
  }
  double total() const { return sum_fp64((parts[0] + parts[1]) + (parts[2] + parts[3])); }
};

double squares(const AdafactorRows& at, float* row_sums, float* column_sums) {
  const F32 scale = fill(at.scale);
  double of_parameter = 0;
  for (int64_t row = 0; row < at.rows; ++row) {
    const float* const p = at.parameter + row * at.columns;
    const float* const g = at.gradient + row * at.columns;
    Sum parameter, gradient;
    over_vectors(0, at.columns, [&](int64_t i, auto lanes) {
      const F32 scaled = lanes.get(g + i) * scale;
      parameter.add_square(i, lanes.get(p + i));
      gradient.add_square(i, scaled);
      if (column_sums != nullptr) {
        lanes.put(column_sums + i, fma(scaled, scaled, lanes.get(column_sums + i)));
      }
    });
    of_parameter += parameter.total();
    if (row_sums != nullptr) row_sums[row] = static_cast<float>(gradient.total());
  }
  return of_parameter;
}

// Calls body(offset, lanes, the change) for each vector of each row.
template <typename Body>
inline void over_changes(const AdafactorRows& at, int64_t row, const Body& body) {
  const F32 scale = fill(at.scale), most = fill(at.most);
  const F32 of_row = fill(at.row_factors != nullptr ? at.row_factors[row] : 1);
  const int64_t begin = row * at.columns;
  if (at.column_factors == nullptr) {
    const F32 factor = min(of_row, most) * scale;
    over_vectors(0, at.columns, [&](int64_t i, auto lanes) {
      body(begin + i, lanes, lanes.get(at.gradient + begin + i) * factor);
    });
    return;
  }
  over_vectors(0, at.columns, [&](int64_t i, auto lanes) {
    const F32 factor = min(of_row * lanes.get(at.column_factors + i), most) * scale;
    body(begin + i, lanes, lanes.get(at.gradient + begin + i) * factor);
  });
}

double change_squares(const AdafactorRows& at) {
  double total = 0;
  for (int64_t row = 0; row < at.rows; ++row) {
    Sum sum;
    over_changes(at, row, [&](int64_t i, auto, F32 change) { sum.add_square(i, change); });
    total += sum.total();
  }
  return total;
}

void update(const AdafactorRows& at, float keep, float rate) {
  const F32 k = fill(keep), r = fill(rate);
  for (int64_t row = 0; row < at.rows; ++row) {
    over_changes(at, row, [&](int64_t i, auto lanes, F32 change) {
      lanes.put(at.parameter + i, fnma(r, change, lanes.get(at.parameter + i) * k));
    });
  }
}

void inverse_roots(const float* numbers, float most, float* roots, int64_t count) {
  const F32 one = fill(1), limit = fill(most);
  over_vectors(0, count, [&](int64_t i, auto lanes) {
    lanes.put(roots + i, min(divide(one, exact_root(lanes.get(numbers + i))), limit));
  });
}

}  // namespace

template <>
AdafactorKernels make_kernels<AdafactorKernels, kIsa>() {
  return {.squares = squares,
          .change_squares = change_squares,
          .update = update,
          .inverse_roots = inverse_roots};
}

}  // namespace gallop::kernel
