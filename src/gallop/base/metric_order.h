#pragma once

#include <cmath>

namespace gallop {

/// Which values of a metric are better.
enum class Better { kSmaller, kLarger };

/// Whether a value of a metric is better than a reference by more than `margin`. Non-finite values
/// never are; any finite value is better than a non-finite reference, such as the initial one.
inline bool is_better(double value, double reference, Better better, double margin = 0) {
  if (!std::isfinite(value)) return false;
  if (!std::isfinite(reference)) return true;
  return better == Better::kLarger ? value > reference + margin : value < reference - margin;
}

}  // namespace gallop
