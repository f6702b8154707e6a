#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace gallop {

/// A fixed number of threads that run tasks in the order of submission. Tasks must handle their
/// errors: one that throws terminates the program.
class ThreadPool {
 public:
  /// `name` (at most 15 characters) is shown by debuggers and profilers. Threads block every
  /// signal, so that signals reach the main thread, and run on all cores, even if the caller is
  /// pinned.
  ThreadPool(int threads, const char* name);
  /// Runs all submitted tasks, then joins.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return static_cast<int>(threads_.size()); }
  void submit(std::function<void()> task);

 private:
  void work();

  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> tasks_;
  bool closing_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace gallop
