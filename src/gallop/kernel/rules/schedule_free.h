#pragma once

#include "gallop/kernel/update_rule.h"

namespace gallop::kernel {

/// Schedule-free SGD and AdamW (Defazio et al., "The road less scheduled", NeurIPS 2024). The
/// parameter is y, where the gradient is taken; x, the average, is what the training is for:
///   w = t^r * (largest lr so far)^weight_lr_power,  c = w / (sum of w)
///   d = g + decay * y                 (AdamW: v as in Adam, d = g / (sqrt(v / ...) + eps) + ...)
///   y = y + c * (z - y) - lr * (1 - beta * (1 - c)) * d,  z = z - lr * d
///   x = y + (1 - 1 / beta) * (z - y)
template <bool kAdam>
struct ScheduleFreeRule {
  static constexpr const char* kName = kAdam ? "schedule_free_adamw" : "schedule_free_sgd";
  enum Option { kBeta, kPower, kLrPower, kBeta2, kEps, kOptions };
  enum Running { kWeightSum, kLargestLr };
  enum Factor { kPull, kShare, kRate, kLr, kKeep2, kTake2, kAdded, kRootScale, kFactors };
  static constexpr int kStates = kAdam ? 2 : 1, kRunning = 2;  // z, v.
  static constexpr Measures kMeasures = Measures::kNothing;

  template <typename Number>
  GALLOP_DEVICE static void begin(const UpdateMoment<Number>& at, Number* f, Number* next) {
    const Number largest = larger(at.lr, at.running[kLargestLr]);
    const Number weight = power(at.step, at.options[kPower]) * power(largest, at.options[kLrPower]);
    const Number sum = at.running[kWeightSum] + weight;
    const Number share = choose(is_above(sum, 0), weight / sum, 0);
    f[kPull] = at.weight_decay;
    f[kShare] = share;
    f[kRate] = at.lr * (1 - at.options[kBeta] * (1 - share));
    f[kLr] = at.lr;
    f[kKeep2] = at.options[kBeta2];
    f[kTake2] = 1 - at.options[kBeta2];
    f[kAdded] = at.options[kEps];
    f[kRootScale] = 1 / square_root(1 - power(at.options[kBeta2], at.step));
    next[kWeightSum] = sum;
    next[kLargestLr] = largest;
  }

  template <typename V>
  GALLOP_DEVICE static void apply(const V& g, V& y, V* s, const V* f) {
    V d = g;
    if constexpr (kAdam) {
      s[1] = fma(g * g, f[kTake2], s[1] * f[kKeep2]);
      d = quotient(g, fma(root(s[1]), f[kRootScale], f[kAdded]));
    }
    d = fma(f[kPull], y, d);
    y = fnma(f[kRate], d, fma(f[kShare], s[0] - y, y));
    s[0] = fnma(f[kLr], d, s[0]);
  }
};

}  // namespace gallop::kernel
