#pragma once

#include <atomic>

namespace gallop {

/// A request to stop that may come from a signal handler at any moment. Whoever runs a loop looks
/// at it between two steps; whoever waits does so in slices and looks as well.
class StopRequest {
 public:
  StopRequest() = default;
  /// Is asked for as well where `outer` is, which outlives it.
  explicit StopRequest(const StopRequest* outer) : outer_(outer) {}

  /// Async-signal-safe. `signal` is the signal's number, or -1 for a request without a signal.
  void request(int signal) { signal_.store(signal, std::memory_order_relaxed); }
  bool requested() const { return signal() != 0; }
  /// Number of the signal that asked, -1 for a request without one, 0 for none.
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
