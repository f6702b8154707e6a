#pragma once

#include "gallop/kernel/update_rule.h"

namespace gallop::kernel {

/// RMSprop (Hinton's lecture 6a of 2012; centered as in Graves, arXiv:1308.0850):
///   g = g + decay * p,  v = alpha * v + (1 - alpha) * g^2
///   c = c + (1 - alpha) * (g - c), w = v - c^2      (centered; else w = v)
///   b = momentum * b + g / (sqrt(w) + eps)          (without momentum the quotient alone)
///   p = p - lr * b
template <bool kCentered, bool kMomentum>
struct RmspropRule {
  static constexpr const char* kName =
      kCentered ? (kMomentum ? "rmsprop_centered_momentum" : "rmsprop_centered")
                : (kMomentum ? "rmsprop_momentum" : "rmsprop");
  enum Option { kAlpha, kEps, kMomentumOption, kOptions };
  enum Factor { kPull, kKeep, kTake, kAdded, kShare, kLr, kNothing, kFactors };
  static constexpr int kStates = 1 + (kCentered ? 1 : 0) + (kMomentum ? 1 : 0);
  static constexpr int kRunning = 0;
  static constexpr Measures kMeasures = Measures::kNothing;

  template <typename Number>
  GALLOP_DEVICE static void begin(const UpdateMoment<Number>& at, Number* f, Number*) {
    f[kPull] = at.weight_decay;
    f[kKeep] = at.options[kAlpha];
    f[kTake] = 1 - at.options[kAlpha];
    f[kAdded] = at.options[kEps];
    f[kShare] = at.options[kMomentumOption];
    f[kLr] = at.lr;
    f[kNothing] = 0;
  }

  template <typename V>
  GALLOP_DEVICE static void apply(const V& gradient, V& p, V* s, const V* f) {
    const V g = fma(f[kPull], p, gradient);
    s[0] = fma(g * g, f[kTake], s[0] * f[kKeep]);
    V square = s[0];
    if constexpr (kCentered) {
      s[1] = fma(g - s[1], f[kTake], s[1]);
      square = fnma(s[1], s[1], s[0]);
      square = max(square, f[kNothing]);  // Rounding can leave less than 0.
    }
    V change = quotient(g, root(square) + f[kAdded]);
    if constexpr (kMomentum) change = s[kStates - 1] = fma(f[kShare], s[kStates - 1], change);
    p = fnma(f[kLr], change, p);
  }
};

}  // namespace gallop::kernel
