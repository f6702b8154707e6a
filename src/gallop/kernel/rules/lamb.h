#pragma once

#include "gallop/kernel/update_rule.h"

namespace gallop::kernel {

/// LAMB (You et al., "Large batch optimization for deep learning", ICLR 2020):
///   m and v as in Adam
///   u = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps) + decay * p
///   p = p - lr * |p| / |u| * u
/// The ratio is 1 where a norm is 0, and without weight decay unless always_adapt.
struct LambRule {
  static constexpr const char* kName = "lamb";
  enum Option { kBeta1, kBeta2, kEps, kAlwaysAdapts, kOptions };
  enum Factor { kTake1, kKeep2, kTake2, kAdded, kPull, kMeanScale, kRootScale, kLr, kFactors };
  static constexpr int kStates = 2, kRunning = 0;
  static constexpr Measures kMeasures = Measures::kAndUpdates;

  template <typename Number>
  GALLOP_DEVICE static void begin(const UpdateMoment<Number>& at, Number* f, Number*) {
    f[kTake1] = 1 - at.options[kBeta1];
    f[kKeep2] = at.options[kBeta2];
    f[kTake2] = 1 - at.options[kBeta2];
    f[kAdded] = at.options[kEps];
    f[kPull] = at.weight_decay;
    f[kMeanScale] = 1 / (1 - power(at.options[kBeta1], at.step));
    f[kRootScale] = 1 / square_root(1 - power(at.options[kBeta2], at.step));
    f[kLr] = at.lr;
  }

  template <typename V>
  GALLOP_DEVICE static V change(const V& p, const V* s, const V* f) {
    const V adapted = quotient(s[0] * f[kMeanScale], fma(root(s[1]), f[kRootScale], f[kAdded]));
    return fma(f[kPull], p, adapted);
  }

  template <typename V>
  GALLOP_DEVICE static V measure(const V& g, const V& p, V* s, const V* f) {
    s[0] = fma(g - s[0], f[kTake1], s[0]);
    s[1] = fma(g * g, f[kTake2], s[1] * f[kKeep2]);
    return change(p, s, f);
  }

  template <typename Number>
  GALLOP_DEVICE static Number ratio(const UpdateMoment<Number>& at, Number parameter,
                                    Number change) {
    const Number ratio = parameter / change;
    const auto adapts = is_above(larger(at.decays, at.options[kAlwaysAdapts]), 0);
    const Number found = choose(is_above(parameter, 0), choose(is_above(change, 0), ratio, 1), 1);
    return choose(adapts, found, 1);
  }

  template <typename V>
  GALLOP_DEVICE static void apply(const V&, V& p, V* s, const V* f, const V& ratio) {
    p = fnma(f[kLr] * ratio, change(p, s, f), p);
  }
};

}  // namespace gallop::kernel
