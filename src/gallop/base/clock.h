#pragma once

#include <chrono>

namespace gallop {

/// Seconds on a clock that never jumps. Only differences mean anything.
inline double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace gallop
