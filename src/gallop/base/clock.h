#pragma once

#include <chrono>

namespace gallop {

/// Seconds of a monotonic clock. Only differences are meaningful.
inline double monotonic_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Seconds since 1970 by the system clock, which may be set at any time.
inline double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace gallop
