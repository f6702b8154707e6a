#pragma once

#include <functional>

namespace gallop {

/// During its lifetime, receives this thread's calls of note_progress(), instead of an enclosing
/// scope.
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

/// Reports progress of a long operation of this thread: a batch was evaluated, a part of a file was
/// written. Without reports, others may consider the process hung. Does nothing outside of any
/// scope.
void note_progress();

}  // namespace gallop
