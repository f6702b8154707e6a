#include "gallop/kernel/cpu/activation.h"

#include "gallop/kernel/cpu/math.h"
#include "gallop/kernel/cpu/vectors.h"

namespace gallop::kernel {
namespace {

// Value and derivative of each activation. Derivatives use f(-x) where 1 - f(x) would cancel.
template <Activation, typename Number>
struct Function;

template <typename Number>
struct Function<Activation::kGelu, Number> {
  // e^(-x^2 / 2), and the share of it that is P(X <= -|x|): a polynomial of 1 / (1 + a |x|), within
  // 3e-8 of the true share for |x| to 14, for bf16 within 5e-6.
  struct Parts {
    F32 density, tail;
  };
  static F32 share(F32 size) {
    if constexpr (__is_same(Number, Bf16)) {
      const F32 t = inverse(fma(fill(0.31F), size, fill(1)));
      F32 p = fma(fill(-7.392921028e-2F), t, fill(1.80450633e-1F));
      p = fma(p, t, fill(1.574427489e-2F));
      p = fma(p, t, fill(1.334300918e-1F));
      p = fma(p, t, fill(1.204411753e-1F));
      p = fma(p, t, fill(1.238607145e-1F));
      return p * t;
    }
    const F32 t = inverse(fma(fill(0.24748737F), size, fill(1)));
    F32 p = fma(fill(1.832736405e-2F), t, fill(-7.477176817e-2F));
    p = fma(p, t, fill(7.982060889e-2F));
    p = fma(p, t, fill(5.228046625e-4F));
    p = fma(p, t, fill(3.170255698e-2F));
    p = fma(p, t, fill(7.927734382e-2F));
    p = fma(p, t, fill(7.345789085e-2F));
    p = fma(p, t, fill(9.440319909e-2F));
    p = fma(p, t, fill(9.851536890e-2F));
    p = fma(p, t, fill(9.874463320e-2F));
    return p * t;
  }
  static Parts parts(F32 x) {
    // 1e-46 beyond 14.5, which is 0 in fp32.
    const F32 size = min(abs(x), fill(14.5F));
    const F32 density = exp_within_for<Number>(size * (size * fill(-0.5F)));
    return {density, density * share(size)};
  }
  static F32 below(F32 x, F32 tail) { return select(x > fill(0), fill(1) - tail, tail); }
  static F32 value(F32 x) { return x * below(x, parts(x).tail); }
  static F32 slope(F32 x) {
    const Parts both = parts(x);
    // 1 / sqrt(2 pi).
    return fma(x * both.density, fill(0.39894228F), below(x, both.tail));
  }
};

template <typename Number>
struct Function<Activation::kGeluTanh, Number> {
  // 2 sqrt(2 / pi), and 0.044715 times that.
  static constexpr float kLinear = 1.5957691216F, kCubic = 0.0713548163F;

  // e^-u, 1 / (1 + e^-u) and du / dx. Beyond 9.9 both ends are reached, and e^-u would overflow.
  struct Parts {
    F32 e, share, du;
  };
  static Parts parts(F32 x) {
    const F32 bounded = min(fill(9.9F), max(fill(-9.9F), x)), square = bounded * bounded;
    const F32 e = exp_within_for<Number>(bounded * fma(square, fill(-kCubic), fill(-kLinear)));
    const F32 sum = fill(1) + e, du = fma(square, fill(3 * kCubic), fill(kLinear));
    const F32 rough = inverse(sum);
    if constexpr (__is_same(Number, Bf16)) return {e, rough, du};
    // What the sum lost in rounding is made good: the library's tanh errs little near 0.
    const F32 lost = e - (sum - fill(1));
    const F32 rest = fnma(lost, rough, fnma(sum, rough, fill(1)));
    return {e, fma(rest, rough, rough), du};
  }
  static F32 value(F32 x) { return x * parts(x).share; }
  static F32 slope(F32 x) {
    const Parts p = parts(x);
    return fma(((p.e * p.share) * x) * p.du, p.share, p.share);
  }
};

template <typename Number>
struct Function<Activation::kSilu, Number> {
  static F32 e_of(F32 x) {
    return exp_within_for<Number>(fill(0) - min(max(x, fill(-87)), fill(105)));
  }
  static F32 value(F32 x) { return x * inverse(fill(1) + e_of(x)); }
  static F32 slope(F32 x) {
    const F32 e = e_of(x), s = inverse(fill(1) + e);
    return fma(x * (e * s), s, s);
  }
};

template <typename Number>
struct Function<Activation::kRelu, Number> {
  static F32 value(F32 x) { return max(fill(0), x); }
  static F32 slope(F32 x) { return select(x > fill(0), fill(1), fill(0)); }
};

template <Activation kKind, typename Number>
void forward(const ActivationRows<Number>& r) {
  using F = Function<kKind, Number>;
  if (r.bias == nullptr) {
    over_vectors(0, r.rows * r.columns,
                 [&](int64_t i, auto lanes) { lanes.put(r.y + i, F::value(lanes.get(r.x + i))); });
    return;
  }
  for (int64_t row = 0; row < r.rows; ++row) {
    const Number* x = r.x + row * r.columns;
    Number* y = r.y + row * r.columns;
    over_vectors(0, r.columns, [&](int64_t i, auto lanes) {
      lanes.put(y + i, F::value(lanes.get(x + i) + lanes.get(r.bias + i)));
    });
  }
}

template <Activation kKind, bool kBias, bool kSums, int64_t kCount, typename Number>
inline void backward_rows(const ActivationGradientRows<Number>& r, int64_t first) {
  const int64_t columns = r.columns, offset = first * columns;
  over_vectors(0, columns, [&](int64_t i, auto lanes) {
    const F32 bias = kBias ? lanes.get(r.bias + i) : fill(0);
    F32 gradients[kCount];
    for (int64_t row = 0; row < kCount; ++row) {
      const int64_t at = offset + row * columns + i;
      F32 in = lanes.get(r.x + at);
      if constexpr (kBias) in = in + bias;
      gradients[row] = lanes.get(r.dy + at) * Function<kKind, Number>::slope(in);
      lanes.put(r.dx + at, gradients[row]);
    }
    if constexpr (kSums) lanes.put(r.sums + i, lanes.get(r.sums + i) + sum_of(gradients));
  });
}

template <Activation kKind, bool kBias, bool kSums, typename Number>
inline void backward(const ActivationGradientRows<Number>& r) {
  if constexpr (kSums) {
    for (int64_t i = 0; i < r.columns; ++i) r.sums[i] = 0;
  }
  int64_t row = 0;
  if constexpr (kSums) {
    // Sums of a few rows each err less than one sum of all.
    for (; row + 4 <= r.rows; row += 4) backward_rows<kKind, kBias, kSums, 4>(r, row);
  }
  for (; row < r.rows; ++row) backward_rows<kKind, kBias, kSums, 1>(r, row);
}

template <Activation kKind, typename Number>
void backward(const ActivationGradientRows<Number>& r) {
  const bool bias = r.bias != nullptr, sums = r.sums != nullptr;
  if (bias && sums) return backward<kKind, true, true>(r);
  if (bias) return backward<kKind, true, false>(r);
  if (sums) return backward<kKind, false, true>(r);
  ActivationGradientRows<Number> flat = r;
  flat.columns *= flat.rows;
  flat.rows = 1;
  backward<kKind, false, false>(flat);
}

template <typename Number>
void any_forward(Activation kind, const ActivationRows<Number>& rows) {
  switch (kind) {
    case Activation::kGelu: return forward<Activation::kGelu>(rows);
    case Activation::kGeluTanh: return forward<Activation::kGeluTanh>(rows);
    case Activation::kSilu: return forward<Activation::kSilu>(rows);
    case Activation::kRelu: return forward<Activation::kRelu>(rows);
  }
}

template <typename Number>
void any_backward(Activation kind, const ActivationGradientRows<Number>& rows) {
  switch (kind) {
    case Activation::kGelu: return backward<Activation::kGelu>(rows);
    case Activation::kGeluTanh: return backward<Activation::kGeluTanh>(rows);
    case Activation::kSilu: return backward<Activation::kSilu>(rows);
    case Activation::kRelu: return backward<Activation::kRelu>(rows);
  }
}

}  // namespace

template <>
ActivationKernels make_kernels<ActivationKernels, kIsa>() {
  return {.forward_fp32 = any_forward<float>,
          .forward_bf16 = any_forward<Bf16>,
          .backward_fp32 = any_backward<float>,
          .backward_bf16 = any_backward<Bf16>};
}

}  // namespace gallop::kernel
