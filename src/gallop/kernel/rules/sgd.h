#pragma once

#include "gallop/kernel/update_rule.h"

namespace gallop::kernel {

enum class Momentum { kNone, kPlain, kNesterov };

/// Stochastic gradient descent; with decoupled decay that of Loshchilov and Hutter ("Decoupled
/// weight decay regularization", ICLR 2019):
///   g = g + decay * p                        (coupled)
///   b = momentum * b + take * g
///   p = keep * p - lr * (b, or with Nesterov g + momentum * b, or without momentum g)
template <Momentum kMomentum, Decay kDecay>
struct SgdRule {
  static constexpr bool kIsCoupled = kDecay == Decay::kCoupled;
  static constexpr const char* kName =
      kMomentum == Momentum::kNone
          ? (kIsCoupled ? "sgd" : "sgdw")
          : (kMomentum == Momentum::kPlain ? (kIsCoupled ? "sgd_momentum" : "sgdw_momentum")
                                           : (kIsCoupled ? "sgd_nesterov" : "sgdw_nesterov"));
  enum Option { kMomentumOption, kDampening, kOptions };
  enum Factor { kLr, kPull, kShare, kTake, kFactors };
  static constexpr int kStates = kMomentum == Momentum::kNone ? 0 : 1;
  static constexpr int kRunning = 0;
  static constexpr Measures kMeasures = Measures::kNothing;

  template <typename Number>
  GALLOP_DEVICE static void begin(const UpdateMoment<Number>& at, Number* f, Number*) {
    f[kLr] = at.lr;
    if constexpr (kIsCoupled) {
      f[kPull] = at.weight_decay;
    } else {
      f[kPull] = 1 - at.lr * at.weight_decay;
    }
    f[kShare] = at.options[kMomentumOption];
    // The first gradient makes up the whole of the momentum.
    f[kTake] = choose(is_above(at.step, 1), 1 - at.options[kDampening], 1);
  }

  template <typename V>
  GALLOP_DEVICE static void apply(const V& gradient, V& p, V* s, const V* f) {
    V change = gradient;
    if constexpr (kIsCoupled) change = fma(f[kPull], p, gradient);
    if constexpr (kMomentum != Momentum::kNone) {
      const V g = change;
      s[0] = fma(f[kShare], s[0], f[kTake] * g);
      change = s[0];
      if constexpr (kMomentum == Momentum::kNesterov) change = fma(f[kShare], s[0], g);
    }
    if constexpr (kIsCoupled) {
      p = fnma(f[kLr], change, p);
    } else {
      p = fnma(f[kLr], change, p * f[kPull]);
    }
  }
};

}  // namespace gallop::kernel
