#pragma once

#include <cstdint>
#include <memory>

#include <c10/core/Device.h>
#include <c10/util/ThreadLocalDebugInfo.h>

namespace gallop::train {

/// While it lives, counts the memory of tensors that this thread and the backward passes that it
/// starts allocate on a device. Tensors allocated before must not be freed meanwhile.
class MemoryUse {
 public:
  explicit MemoryUse(c10::Device device);

  int64_t bytes() const;       ///< Allocated since the beginning and not yet freed.
  int64_t peak_bytes() const;  ///< The maximum of bytes().

 private:
  struct Counter;

  std::shared_ptr<Counter> counter_;
  c10::DebugInfoGuard guard_;
};

}  // namespace gallop::train
