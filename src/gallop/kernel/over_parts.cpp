#include "gallop/kernel/over_parts.h"

#include <ATen/Parallel.h>

#include "gallop/kernel/flush_tiny.h"

namespace gallop::kernel {

void over_parts(int64_t count, bool alone, const std::function<void(int64_t)>& body) {
  const auto range = [&](int64_t begin, int64_t end) {
    const FlushTiny flush_tiny;
    for (int64_t i = begin; i < end; ++i) body(i);
  };
  if (alone) {
    range(0, count);
  } else {
    at::parallel_for(0, count, 1, range);
  }
}

}  // namespace gallop::kernel
