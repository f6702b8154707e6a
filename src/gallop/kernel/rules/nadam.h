#pragma once

#include "gallop/kernel/update_rule.h"

namespace gallop::kernel {

/// Adam with Nesterov's momentum (Dozat, ICLR 2016 workshop), as in PyTorch:
///   u(t) = beta1 * (1 - 0.96^(t * momentum_decay) / 2),  U = the product of u(1) to u(t)
///   g = g + decay * p                        (coupled)
///   m and v as in Adam
///   p = keep * p - (lr * (1 - u(t)) / (1 - U) * g + lr * u(t + 1) / (1 - U * u(t + 1)) * m) /
///       (root_scale * sqrt(v) + eps)
struct NadamRule {
  static constexpr const char* kName = "nadam";
  enum Option { kBeta1, kBeta2, kEps, kMomentumDecay, kIsDecoupled, kOptions };
  enum Factor {
    kTake1,
    kKeep2,
    kTake2,
    kAdded,
    kPull,
    kKeep,
    kGradientRate,
    kMeanRate,
    kRootScale,
    kFactors
  };
  static constexpr int kStates = 2, kRunning = 1;
  static constexpr Measures kMeasures = Measures::kNothing;

  template <typename Number>
  GALLOP_DEVICE static void begin(const UpdateMoment<Number>& at, Number* f, Number* next) {
    const Number beta1 = at.options[kBeta1], beta2 = at.options[kBeta2];
    const Number momentum_decay = at.options[kMomentumDecay];
    const auto is_decoupled = is_above(at.options[kIsDecoupled], 0);
    f[kTake1] = 1 - beta1;
    f[kKeep2] = beta2;
    f[kTake2] = 1 - beta2;
    f[kAdded] = at.options[kEps];
    f[kPull] = choose(is_decoupled, 0, at.weight_decay);
    f[kKeep] = 1 - at.lr * choose(is_decoupled, at.weight_decay, 0);
    const Number now = beta1 * (1 - 0.5 * power(0.96, at.step * momentum_decay));
    const Number then = beta1 * (1 - 0.5 * power(0.96, (at.step + 1) * momentum_decay));
    const Number product = at.running[0] * now;
    f[kGradientRate] = at.lr * (1 - now) / (1 - product);
    f[kMeanRate] = at.lr * then / (1 - product * then);
    f[kRootScale] = 1 / square_root(1 - power(beta2, at.step));
    next[0] = product;
  }

  template <typename V>
  GALLOP_DEVICE static void apply(const V& gradient, V& p, V* s, const V* f) {
    const V g = fma(f[kPull], p, gradient);
    s[0] = fma(g - s[0], f[kTake1], s[0]);
    s[1] = fma(g * g, f[kTake2], s[1] * f[kKeep2]);
    const V change = fma(f[kMeanRate], s[0], f[kGradientRate] * g);
    p = p * f[kKeep] - quotient(change, fma(root(s[1]), f[kRootScale], f[kAdded]));
  }
};

}  // namespace gallop::kernel
