#pragma once

#include "gallop/kernel/update_rule.h"

namespace gallop::kernel {

/// Adam (Kingma and Ba, ICLR 2015), with decoupled decay AdamW; AMSGrad (Reddi et al., ICLR 2018)
/// divides by the largest v so far:
///   g = g + decay * p                        (coupled)
///   m = m + take1 * (g - m),  v = beta2 * v + take2 * g^2
///   p = keep * p - rate * m / (root_scale * sqrt(v) + eps)
template <Decay kDecay, bool kAmsgrad>
struct AdamRule {
  static constexpr bool kIsCoupled = kDecay == Decay::kCoupled;
  static constexpr const char* kName =
      kAmsgrad ? (kIsCoupled ? "adam_amsgrad" : "adamw_amsgrad") : (kIsCoupled ? "adam" : "adamw");
  enum Option { kBeta1, kBeta2, kEps, kOptions };
  enum Factor { kTake1, kKeep2, kTake2, kAdded, kPull, kRate, kRootScale, kFactors };
  static constexpr int kStates = kAmsgrad ? 3 : 2;
  static constexpr int kRunning = 0;
  static constexpr Measures kMeasures = Measures::kNothing;

  template <typename Number>
  GALLOP_DEVICE static void begin(const UpdateMoment<Number>& at, Number* f, Number*) {
    const Number beta1 = at.options[kBeta1], beta2 = at.options[kBeta2];
    // From fp64: in fp32 they would lose half their digits.
    f[kTake1] = 1 - beta1;
    f[kKeep2] = beta2;
    f[kTake2] = 1 - beta2;
    f[kAdded] = at.options[kEps];
    if constexpr (kIsCoupled) {
      f[kPull] = at.weight_decay;
    } else {
      f[kPull] = 1 - at.lr * at.weight_decay;
    }
    f[kRate] = at.lr / (1 - power(beta1, at.step));
    f[kRootScale] = 1 / square_root(1 - power(beta2, at.step));
  }

  template <typename V>
  GALLOP_DEVICE static void apply(const V& gradient, V& p, V* s, const V* f) {
    V g = gradient;
    if constexpr (kIsCoupled) g = fma(f[kPull], p, gradient);
    s[0] = fma(g - s[0], f[kTake1], s[0]);
    s[1] = fma(g * g, f[kTake2], s[1] * f[kKeep2]);
    V square = s[1];
    if constexpr (kAmsgrad) square = s[2] = max(s[2], s[1]);
    const V change = quotient(s[0], fma(root(square), f[kRootScale], f[kAdded]));
    if constexpr (kIsCoupled) {
      p = fnma(f[kRate], change, p);
    } else {
      p = fnma(f[kRate], change, p * f[kPull]);
    }
  }
};

}  // namespace gallop::kernel
