#include "gallop/kernel/cpu/cross_entropy.h"

#include "gallop/kernel/cpu/math.h"
#include "gallop/kernel/cpu/vectors.h"

namespace gallop::kernel {
namespace {

// Columns that lanes sum in fp32 before fp64 takes over.
constexpr int64_t kChunk = 512;
// Vectors at once, so that one need not wait for the one before.
constexpr int64_t kAtOnce = 4;

struct None {};  // In the place of shares: the target is an index.

template <typename Number>
inline float largest_of(const Number* x, int64_t count) {
  F32 parts[kAtOnce];
  for (F32& part : parts) part = fill(-__builtin_inff());
  int64_t i = 0;
  for (; i + kAtOnce * kLanes <= count; i += kAtOnce * kLanes) {
    for (int64_t v = 0; v < kAtOnce; ++v) parts[v] = max(load(x + i + v * kLanes), parts[v]);
  }
  for (; i + kLanes <= count; i += kLanes) parts[0] = max(load(x + i), parts[0]);
  if (i < count) {
    // The last vector once more, or numbers that are not there would count.
    if (count >= kLanes) {
      parts[0] = max(load(x + count - kLanes), parts[0]);
    } else {
      float lanes[kLanes];
      store(lanes, load(x, count));
      for (int64_t lane = count; lane < kLanes; ++lane) lanes[lane] = lanes[0];
      parts[0] = max(load(lanes), parts[0]);
    }
  }
  return largest(max(max(parts[0], parts[1]), max(parts[2], parts[3])));
}

// e^d of d <= 0. NaN stays, which exp() would take for a small number.
inline F32 exp_below(F32 d) { return exp_within(max(fill(-105), d)); }

// With d = x - the row's largest: sums of e^d, of d, of the shares t and of t d.
struct Sums {
  double exp = 0, off = 0, share = 0, product = 0;
};

template <typename Number, typename Share, bool kSmooth>
inline Sums sums_of(const Number* x, const Share* shares, float top, int64_t columns) {
  constexpr bool kShares = !__is_same(Share, None);
  const F32 m = fill(top);
  Sums all;
  for (int64_t begin = 0; begin < columns; begin += kChunk) {
    const int64_t end = columns - begin < kChunk ? columns : begin + kChunk;
    F32 exps = fill(0), offs = fill(0), share_sum = fill(0), products = fill(0);
    over_vectors(begin, end, [&](int64_t i, auto lanes) {
      const F32 d = lanes.get(x + i) - m;
      exps = exps + lanes.cleared(exp_below(d));
      if constexpr (kSmooth) offs = offs + lanes.cleared(d);
      if constexpr (kShares) {
        const F32 t = lanes.get(shares + i);
        share_sum = share_sum + t;
        products = products + lanes.cleared(t * d);
      }
    });
    all.exp += static_cast<double>(sum(exps));
    if constexpr (kSmooth) all.off += static_cast<double>(sum(offs));
    if constexpr (kShares) {
      all.share += static_cast<double>(sum(share_sum));
      all.product += static_cast<double>(sum(products));
    }
  }
  return all;
}

// Logarithms of up to kLanes numbers.
inline void logs_of(const double* x, int64_t count, float* logs) {
  float rounded[kLanes];
  for (int64_t i = 0; i < kLanes; ++i) rounded[i] = i < count ? static_cast<float>(x[i]) : 1;
  store(logs, log(load(rounded)));
}

template <typename Number, typename Share, bool kSmooth>
void forward(const CrossEntropyRows<Number>& r, const Share* shares) {
  const double smoothing = static_cast<double>(r.targets.smoothing), keep = 1 - smoothing;
  const double each = smoothing / static_cast<double>(r.columns);
  for (int64_t first = 0; first < r.rows; first += kLanes) {
    const int64_t count = r.rows - first < kLanes ? r.rows - first : kLanes;
    Sums all[kLanes];
    double exps[kLanes];
    float logs[kLanes];
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = first + i;
      const Number* x = r.logits + row * r.columns;
      const float top = r.saved[row].largest = largest_of(x, r.columns);
      const Share* share = nullptr;
      if constexpr (!__is_same(Share, None)) share = shares + row * r.columns;
      all[i] = sums_of<Number, Share, kSmooth>(x, share, top, r.columns);
      exps[i] = all[i].exp;
    }
    logs_of(exps, count, logs);
    for (int64_t i = 0; i < count; ++i) {
      const int64_t row = first + i;
      const Number* x = r.logits + row * r.columns;
      CrossEntropyRow& saved = r.saved[row];
      double weight = 1, wanted = 0;  // Sums of the targets, and of each times its d.
      if constexpr (__is_same(Share, None)) {
        const int64_t target = r.targets.indices[row];
        const bool counts = target != r.targets.ignored;
        weight = counts ? 1 : 0;
        const double at = counts ? static_cast<double>(as_fp32(x[target])) : 0;
        wanted = keep * (at - static_cast<double>(saved.largest));
        if (r.correct != nullptr) {
          r.correct[row] = counts && as_fp32(x[target]) >= saved.largest &&
                           !(target > 0 && largest_of(x, target) >= saved.largest);
        }
      } else {
        weight = keep * all[i].share + smoothing;
        wanted = keep * all[i].product;
      }
      if constexpr (kSmooth) wanted += each * all[i].off;
      saved.share = static_cast<float>(weight / exps[i]);
      const bool counts = __is_same(Share, float) || __is_same(Share, Bf16) || weight > 0;
      r.losses[row] = counts ? weight * static_cast<double>(logs[i]) - wanted : 0;
    }
  }
}

template <typename Number, typename Share>
void forward(const CrossEntropyRows<Number>& r, const Share* shares) {
  return r.targets.smoothing > 0 ? forward<Number, Share, true>(r, shares)
                                 : forward<Number, Share, false>(r, shares);
}

template <typename Number>
void any_forward(const CrossEntropyRows<Number>& r) {
  const CrossEntropyTargets& targets = r.targets;
  if (targets.indices != nullptr) return forward<Number, None>(r, nullptr);
  if (targets.shares_bf16 != nullptr) return forward(r, targets.shares_bf16);
  return forward(r, targets.shares_fp32);
}

template <typename Number>
inline void fill_with_zeros(Number* to, int64_t count) {
  over_vectors(0, count, [&](int64_t i, auto lanes) { lanes.put(to + i, fill(0)); });
}

template <typename Number, typename Share>
void backward(const CrossEntropyGradientRows<Number>& r, const Share* shares) {
  const float smoothing = r.targets.smoothing, keep = 1 - smoothing;
  const float each = smoothing / static_cast<float>(r.columns) * r.scale;
  const F32 less = fill(-each), scale = fill(r.scale), kept = fill(keep * r.scale);
  for (int64_t row = 0; row < r.rows; ++row) {
    const int64_t offset = row * r.columns;
    const Number* x = r.logits + offset;
    Number* dx = r.gradient + offset;
    const F32 top = fill(r.saved[row].largest), share = fill(r.saved[row].share);
    const auto softmax_part = [&](F32 value) {
      return fma(exp_below(value - top) * share, scale, less);
    };
    if constexpr (__is_same(Share, None)) {
      const int64_t target = r.targets.indices[row];
      if (target == r.targets.ignored) {
        fill_with_zeros(dx, r.columns);
        continue;
      }
      const F32 at = fill(as_fp32(x[target]));
      over_vectors(0, r.columns, [&](int64_t i, auto lanes) {
        lanes.put(dx + i, softmax_part(lanes.get(x + i)));
      });
      // In one product: p - 1 is what a sure model's gradient is.
      const F32 p = exp_below(at - top) * share;
      store(dx + target, fma(p - fill(keep), scale, less), 1);
    } else {
      const Share* t = shares + offset;
      over_vectors(0, r.columns, [&](int64_t i, auto lanes) {
        const F32 p = softmax_part(lanes.get(x + i));
        lanes.put(dx + i, fnma(lanes.get(t + i), kept, p));
      });
    }
  }
}

template <typename Number>
void any_backward(const CrossEntropyGradientRows<Number>& r) {
  const CrossEntropyTargets& targets = r.targets;
  if (targets.indices != nullptr) return backward<Number, None>(r, nullptr);
  if (targets.shares_bf16 != nullptr) return backward(r, targets.shares_bf16);
  return backward(r, targets.shares_fp32);
}

}  // namespace

template <>
CrossEntropyKernels make_kernels<CrossEntropyKernels, kIsa>() {
  return {.forward_fp32 = any_forward<float>,
          .forward_bf16 = any_forward<Bf16>,
          .backward_fp32 = any_backward<float>,
          .backward_bf16 = any_backward<Bf16>};
}

}  // namespace gallop::kernel
