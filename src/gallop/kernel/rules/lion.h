#pragma once

#include "gallop/kernel/update_rule.h"

namespace gallop::kernel {

/// Lion (Chen et al., "Symbolic discovery of optimization algorithms", NeurIPS 2023):
///   p = keep * p - lr * sign(m + take1 * (g - m))
///   m = m + take2 * (g - m)
struct LionRule {
  static constexpr const char* kName = "lion";
  enum Option { kBeta1, kBeta2, kOptions };
  enum Factor { kTake1, kTake2, kKeep, kLr, kFactors };
  static constexpr int kStates = 1, kRunning = 0;
  static constexpr Measures kMeasures = Measures::kNothing;

  template <typename Number>
  GALLOP_DEVICE static void begin(const UpdateMoment<Number>& at, Number* f, Number*) {
    f[kTake1] = 1 - at.options[kBeta1];
    f[kTake2] = 1 - at.options[kBeta2];
    f[kKeep] = 1 - at.lr * at.weight_decay;
    f[kLr] = at.lr;
  }

  template <typename V>
  GALLOP_DEVICE static void apply(const V& g, V& p, V* s, const V* f) {
    const V apart = g - s[0];
    p = fnma(f[kLr], sign(fma(apart, f[kTake1], s[0])), p * f[kKeep]);
    s[0] = fma(apart, f[kTake2], s[0]);
  }
};

}  // namespace gallop::kernel
