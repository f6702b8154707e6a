#pragma once

#include <cmath>

namespace gallop::data::pixels {

/// torch.linspace(start, end, steps)[at] in single precision on a CPU: from the nearer end, with
/// fused multiply-add.
inline float linspace(double start, double end, int at, int steps) {
  const auto from = static_cast<float>(start), to = static_cast<float>(end);
  if (steps == 1) return from;
  const float step = (to - from) / static_cast<float>(steps - 1);
  if (at < steps / 2) return std::fma(step, static_cast<float>(at), from);
  return std::fma(-step, static_cast<float>(steps - 1 - at), to);
}

}  // namespace gallop::data::pixels
