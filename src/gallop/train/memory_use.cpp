#include "gallop/train/memory_use.h"

#include <algorithm>
#include <mutex>

#include <c10/core/Allocator.h>

namespace gallop::train {

// Receives the reports of LibTorch's allocators.
struct MemoryUse::Counter final : c10::MemoryReportingInfoBase {
  explicit Counter(c10::Device where) : device(where) {}

  void reportMemoryUsage(void* /*pointer*/, int64_t size, size_t /*allocated*/, size_t /*reserved*/,
                         c10::Device where) override {
    if (where.type() != device.type()) return;
    const std::lock_guard lock(mutex);
    bytes += size;
    peak_bytes = std::max(peak_bytes, bytes);
  }
  bool memoryProfilingEnabled() const override { return true; }

  c10::Device device;
  mutable std::mutex mutex;
  int64_t bytes = 0, peak_bytes = 0;
};

MemoryUse::MemoryUse(c10::Device device)
    : counter_(std::make_shared<Counter>(device)),
      guard_(c10::DebugInfoKind::PROFILER_STATE, counter_) {}

int64_t MemoryUse::bytes() const {
  const std::lock_guard lock(counter_->mutex);
  return counter_->bytes;
}

int64_t MemoryUse::peak_bytes() const {
  const std::lock_guard lock(counter_->mutex);
  return counter_->peak_bytes;
}

}  // namespace gallop::train
