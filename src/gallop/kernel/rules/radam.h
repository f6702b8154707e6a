#pragma once

#include "gallop/kernel/update_rule.h"

namespace gallop::kernel {

/// Rectified Adam (Liu et al., "On the variance of the adaptive learning rate and beyond", ICLR
/// 2020): Adam once its second moment rests on enough steps, momentum before. As in PyTorch eps is
/// added to sqrt(v) before its bias is corrected.
struct RadamRule {
  static constexpr const char* kName = "radam";
  enum Option { kBeta1, kBeta2, kEps, kIsDecoupled, kOptions };
  enum Factor { kTake1, kKeep2, kTake2, kAdded, kPull, kKeep, kPlain, kAdaptive, kFactors };
  static constexpr int kStates = 2, kRunning = 0;
  static constexpr Measures kMeasures = Measures::kNothing;

  template <typename Number>
  GALLOP_DEVICE static void begin(const UpdateMoment<Number>& at, Number* f, Number*) {
    const Number beta1 = at.options[kBeta1], beta2 = at.options[kBeta2];
    const auto is_decoupled = is_above(at.options[kIsDecoupled], 0);
    f[kTake1] = 1 - beta1;
    f[kKeep2] = beta2;
    f[kTake2] = 1 - beta2;
    f[kAdded] = at.options[kEps];
    f[kPull] = choose(is_decoupled, 0, at.weight_decay);
    f[kKeep] = 1 - at.lr * choose(is_decoupled, at.weight_decay, 0);
    const Number rate = at.lr / (1 - power(beta1, at.step));
    const Number kept = power(beta2, at.step), correction = 1 - kept;
    const Number most = 2 / (1 - beta2) - 1;
    const Number length = most - 2 * at.step * kept / correction;
    const Number rectified = square_root((length - 4) * (length - 2) * most * correction /
                                         ((most - 4) * (most - 2) * length));
    f[kPlain] = choose(is_above(length, 5), 0, rate);
    f[kAdaptive] = choose(is_above(length, 5), rate * rectified, 0);
  }

  template <typename V>
  GALLOP_DEVICE static void apply(const V& gradient, V& p, V* s, const V* f) {
    const V g = fma(f[kPull], p, gradient);
    s[0] = fma(g - s[0], f[kTake1], s[0]);
    s[1] = fma(g * g, f[kTake2], s[1] * f[kKeep2]);
    const V adapted = quotient(s[0], root(s[1]) + f[kAdded]);
    p = fnma(f[kAdaptive], adapted, fnma(f[kPlain], s[0], p * f[kKeep]));
  }
};

}  // namespace gallop::kernel
