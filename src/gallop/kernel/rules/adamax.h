#pragma once

#include "gallop/kernel/update_rule.h"

namespace gallop::kernel {

/// Adam by the largest gradient (Kingma and Ba, ICLR 2015, section 7), as in PyTorch:
///   g = g + decay * p,  m = m + take1 * (g - m),  u = max(beta2 * u, |g| + eps)
///   p = p - rate * m / u
struct AdamaxRule {
  static constexpr const char* kName = "adamax";
  enum Option { kBeta1, kBeta2, kEps, kOptions };
  enum Factor { kPull, kTake1, kKeep2, kAdded, kRate, kFactors };
  static constexpr int kStates = 2, kRunning = 0;
  static constexpr Measures kMeasures = Measures::kNothing;

  template <typename Number>
  GALLOP_DEVICE static void begin(const UpdateMoment<Number>& at, Number* f, Number*) {
    f[kPull] = at.weight_decay;
    f[kTake1] = 1 - at.options[kBeta1];
    f[kKeep2] = at.options[kBeta2];
    f[kAdded] = at.options[kEps];
    f[kRate] = at.lr / (1 - power(at.options[kBeta1], at.step));
  }

  template <typename V>
  GALLOP_DEVICE static void apply(const V& gradient, V& p, V* s, const V* f) {
    const V g = fma(f[kPull], p, gradient);
    s[0] = fma(g - s[0], f[kTake1], s[0]);
    s[1] = max(s[1] * f[kKeep2], magnitude(g) + f[kAdded]);
    p = fnma(f[kRate], quotient(s[0], s[1]), p);
  }
};

}  // namespace gallop::kernel
