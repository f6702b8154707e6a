#pragma once

#include "gallop/kernel/update_rule.h"

namespace gallop::kernel {

/// Adagrad (Duchi et al., JMLR 2011):
///   g = g + decay * p,  v = v + g^2
///   p = p - rate * g / (sqrt(v) + eps)
struct AdagradRule {
  static constexpr const char* kName = "adagrad";
  enum Option { kLrDecay, kEps, kOptions };
  enum Factor { kPull, kRate, kAdded, kFactors };
  static constexpr int kStates = 1, kRunning = 0;
  static constexpr Measures kMeasures = Measures::kNothing;

  template <typename Number>
  GALLOP_DEVICE static void begin(const UpdateMoment<Number>& at, Number* f, Number*) {
    f[kPull] = at.weight_decay;
    f[kRate] = at.lr / (1 + (at.step - 1) * at.options[kLrDecay]);
    f[kAdded] = at.options[kEps];
  }

  template <typename V>
  GALLOP_DEVICE static void apply(const V& gradient, V& p, V* s, const V* f) {
    const V g = fma(f[kPull], p, gradient);
    s[0] = fma(g, g, s[0]);
    p = fnma(f[kRate], quotient(g, root(s[0]) + f[kAdded]), p);
  }
};

}  // namespace gallop::kernel
