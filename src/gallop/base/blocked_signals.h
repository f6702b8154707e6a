#pragma once

#include <csignal>
#include <initializer_list>

namespace gallop {

/// Blocks signals in the current thread during its lifetime. Threads created meanwhile keep them
/// blocked.
class BlockedSignals {
 public:
  BlockedSignals(std::initializer_list<int> signals);
  static BlockedSignals all();
  ~BlockedSignals();
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  explicit BlockedSignals(const sigset_t& signals);

  sigset_t previous_{};
};

}  // namespace gallop
