#pragma once

#include <atomic>
#include <string>
#include <vector>

namespace gallop::compile {

/// How a program that was started came to its end.
struct ChildResult {
  enum class End : uint8_t {
    kExited,      ///< By itself, with `code`.
    kNotStarted,  ///< `output` is the system's reason.
    kTimedOut,
    kStopped,  ///< As `stop` became true.
  };
  End end = End::kNotStarted;
  int code = -1;
  std::string output;  ///< What it wrote, both streams, at most 64 KiB.

  bool is_good() const { return end == End::kExited && code == 0; }
};

/// Runs a program (found in $PATH) without input. It and its children are ended after
/// `timeout_seconds` or when `stop` becomes true. May be called by several threads.
ChildResult run_child(const std::vector<std::string>& command, double timeout_seconds,
                      const std::atomic<bool>& stop);

}  // namespace gallop::compile
