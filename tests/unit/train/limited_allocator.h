#pragma once

#include <algorithm>
#include <limits>
#include <map>
#include <mutex>
#include <utility>

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>

#include "gallop/compile/arena.h"

namespace gallop::train {

/// LibTorch's CPU allocator with a limit, beyond which it throws LibTorch's out-of-memory error.
/// Includes memory placed by arenas. Never destroyed, because blocks may outlive a test.
class LimitedAllocator final : public c10::Allocator {
 public:
  /// The instance of the program, initially without a limit.
  static LimitedAllocator& get() {
    static LimitedAllocator& allocator = *new LimitedAllocator;
    allocator.lift();
    return allocator;
  }

  /// Limits the bytes allocated from now on.
  void limit(int64_t bytes) {
    const std::lock_guard lock(mutex_);
    limit_ = bytes;
    now_ = peak_ = failures_ = 0;
  }
  void lift() { limit(std::numeric_limits<int64_t>::max()); }
  /// Makes one allocation of this thread fail, after this many successful ones.
  static void fail_after(int64_t allocations) { left_of_thread_ = allocations; }
  /// The number of allocations of this thread so far.
  static int64_t allocations_of_thread() { return made_by_thread_; }

  /// The bytes allocated minus those released since the last limit().
  int64_t now() const { return now_; }
  int64_t peak() const { return peak_; }
  int64_t failures() const { return failures_; }

  c10::DataPtr allocate(size_t bytes) override {
    const auto size = static_cast<int64_t>(bytes);
    made_by_thread_ += 1;
    if (left_of_thread_ >= 0 && left_of_thread_-- == 0) return inner_->allocate(size_t{1} << 62);
    {
      const std::lock_guard lock(mutex_);
      if (now_ + size > limit_) {
        failures_ += 1;
        return inner_->allocate(size_t{1} << 62);
      }
      now_ += size;
      peak_ = std::max(peak_, now_);
    }
    c10::DataPtr block = inner_->allocate(bytes);
    void* const data = block.get();
    const std::lock_guard lock(mutex_);
    if (data != nullptr) blocks_.insert_or_assign(data, std::pair(size, std::move(block)));
    return {data, data, &release, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }

  void copy_data(void* to, const void* from, size_t bytes) const override {
    default_copy_data(to, from, bytes);
  }

 private:
  LimitedAllocator() {
    // Arenas wrap the current allocator; this one wraps them.
    compile::Arena::reserve();
    inner_ = c10::GetCPUAllocator();
    self_ = this;
    c10::SetCPUAllocator(this);
  }

  static void release(void* data) {
    if (data == nullptr) return;
    c10::DataPtr block;
    const std::lock_guard lock(self_->mutex_);
    const auto found = self_->blocks_.find(data);
    self_->now_ -= found->second.first;
    block = std::move(found->second.second);
    self_->blocks_.erase(found);
  }

  static inline LimitedAllocator* self_ = nullptr;
  static inline thread_local int64_t left_of_thread_ = -1, made_by_thread_ = 0;

  c10::Allocator* inner_ = nullptr;
  std::mutex mutex_;
  std::map<void*, std::pair<int64_t, c10::DataPtr>> blocks_;
  int64_t limit_ = std::numeric_limits<int64_t>::max(), now_ = 0, peak_ = 0, failures_ = 0;
};

}  // namespace gallop::train
