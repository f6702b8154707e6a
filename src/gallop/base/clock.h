#pragma once

#include <chrono>

namespace gallop {

/// Seconds on a clock that never jumps. Only differences mean anything.
inline double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Seconds since 1970 on the clock on the wall, which may be set at any moment.
inline double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace gallop
