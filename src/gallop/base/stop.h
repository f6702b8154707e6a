#pragma once

#include <atomic>

namespace gallop {

/// A stop request that a signal handler can set at any time. Loops poll it between two steps; waits
/// are split into slices and poll it, too.
class StopRequest {
 public:
  StopRequest() = default;
  /// Also requested if `outer` is, which must outlive this object.
  explicit StopRequest(const StopRequest* outer) : outer_(outer) {}

  /// Async-signal-safe. `signal` is the signal's number, or -1 for a request without a signal.
  void request(int signal) { signal_.store(signal, std::memory_order_relaxed); }
  bool requested() const { return signal() != 0; }
  /// The number of the requesting signal, -1 for a request without one, 0 for none.
  int signal() const {
    const int signal = signal_.load(std::memory_order_relaxed);
    return signal == 0 && outer_ != nullptr ? outer_->signal() : signal;
  }

 private:
  const StopRequest* outer_ = nullptr;
  std::atomic<int> signal_{0};
  static_assert(std::atomic<int>::is_always_lock_free);
};

}  // namespace gallop
