#pragma once

#include "gallop/kernel/update_rule.h"

namespace gallop::kernel {

/// LARS (You et al., "Large batch training of convolutional networks", arXiv:1708.03888):
///   r = trust * |p| / (|g| + decay * |p| + eps)
///   b = momentum * b + lr * r * (g + decay * p),  p = p - b
/// r is 1 where a norm is 0, and without weight decay unless always_adapt.
struct LarsRule {
  static constexpr const char* kName = "lars";
  enum Option { kMomentum, kTrust, kEps, kAlwaysAdapts, kOptions };
  enum Factor { kPull, kShare, kLr, kFactors };
  static constexpr int kStates = 1, kRunning = 0;
  static constexpr Measures kMeasures = Measures::kOnly;

  template <typename Number>
  GALLOP_DEVICE static void begin(const UpdateMoment<Number>& at, Number* f, Number*) {
    f[kPull] = at.weight_decay;
    f[kShare] = at.options[kMomentum];
    f[kLr] = at.lr;
  }

  template <typename V>
  GALLOP_DEVICE static V measure(const V& g, const V&, V*, const V*) {
    return g;
  }

  template <typename Number>
  GALLOP_DEVICE static Number ratio(const UpdateMoment<Number>& at, Number parameter,
                                    Number gradient) {
    const Number ratio = at.options[kTrust] * parameter /
                         (gradient + at.weight_decay * parameter + at.options[kEps]);
    const auto adapts = is_above(larger(at.decays, at.options[kAlwaysAdapts]), 0);
    const Number found = choose(is_above(parameter, 0), choose(is_above(gradient, 0), ratio, 1), 1);
    return choose(adapts, found, 1);
  }

  template <typename V>
  GALLOP_DEVICE static void apply(const V& g, V& p, V* s, const V* f, const V& ratio) {
    s[0] = fma(f[kShare], s[0], f[kLr] * ratio * fma(f[kPull], p, g));
    p = p - s[0];
  }
};

}  // namespace gallop::kernel
