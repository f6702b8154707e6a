#pragma once

#include "gallop/kernel/update_rule.h"

namespace gallop::kernel {

/// Adadelta (Zeiler, arXiv:1212.5701):
///   g = g + decay * p,  v = rho * v + (1 - rho) * g^2
///   d = sqrt(u + eps) / sqrt(v + eps) * g,  u = rho * u + (1 - rho) * d^2
///   p = p - lr * d
struct AdadeltaRule {
  static constexpr const char* kName = "adadelta";
  enum Option { kRho, kEps, kOptions };
  enum Factor { kPull, kKeep, kTake, kAdded, kLr, kFactors };
  static constexpr int kStates = 2, kRunning = 0;
  static constexpr Measures kMeasures = Measures::kNothing;

  template <typename Number>
  GALLOP_DEVICE static void begin(const UpdateMoment<Number>& at, Number* f, Number*) {
    f[kPull] = at.weight_decay;
    f[kKeep] = at.options[kRho];
    f[kTake] = 1 - at.options[kRho];
    f[kAdded] = at.options[kEps];
    f[kLr] = at.lr;
  }

  template <typename V>
  GALLOP_DEVICE static void apply(const V& gradient, V& p, V* s, const V* f) {
    const V g = fma(f[kPull], p, gradient);
    s[0] = fma(g * g, f[kTake], s[0] * f[kKeep]);
    const V d = quotient(root(s[1] + f[kAdded]), root(s[0] + f[kAdded])) * g;
    s[1] = fma(d * d, f[kTake], s[1] * f[kKeep]);
    p = fnma(f[kLr], d, p);
  }
};

}  // namespace gallop::kernel
