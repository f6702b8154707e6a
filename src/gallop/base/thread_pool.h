#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace gallop {

/// A fixed number of threads that run tasks in the order of submission. Tasks handle their own
/// errors: one that throws ends the program.
class ThreadPool {
 public:
  /// `name` (at most 15 letters) is what debuggers and profilers show. Threads block every signal,
  /// so that signals reach the main thread, and run on all cores, wherever the caller is kept.
  ThreadPool(int threads, const char* name);
  /// Runs what has been submitted to its end, then joins.
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
