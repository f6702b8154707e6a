#pragma once

#include <functional>

namespace gallop {

/// While it lives, receives this thread's calls of note_progress(), in place of one around it.
class ProgressScope {
 public:
  explicit ProgressScope(std::function<void()> heard);
  ~ProgressScope();
  ProgressScope(const ProgressScope&) = delete;
  ProgressScope& operator=(const ProgressScope&) = delete;

 private:
  friend void note_progress();

  std::function<void()> heard_;
  ProgressScope* outer_;
};

/// Tells that a long piece of work of this thread goes ahead: a batch has been evaluated, a part of
/// a file written. Others may take a process that tells nothing for one that hangs. Does nothing
/// outside of any scope.
void note_progress();

}  // namespace gallop
