#pragma once

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

namespace gallop::kernel {

/// While it lives, this thread's vector instructions treat numbers below the normal range of fp32
/// (2^-126) as 0, if the machine can: x86 takes some hundred times as long for each.
class FlushTiny {
 public:
#if defined(__x86_64__)
  FlushTiny() : before_(_mm_getcsr()) { _mm_setcsr(before_ | kFlushResults | kFlushOperands); }
  ~FlushTiny() { _mm_setcsr(before_); }
#else
  FlushTiny() = default;
#endif
  FlushTiny(const FlushTiny&) = delete;
  FlushTiny& operator=(const FlushTiny&) = delete;

 private:
#if defined(__x86_64__)
  static constexpr unsigned kFlushResults = 0x8000, kFlushOperands = 0x0040;
  unsigned before_;
#endif
};

}  // namespace gallop::kernel
