#include "gallop/kernel/shared_cores.h"

#include <omp.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <fstream>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "gallop/base/affinity.h"
#include "gallop/base/can_start_threads.h"
#include "gallop/base/clock.h"
#include "gallop/base/process_time.h"

namespace gallop::kernel {

namespace {

// A thread with a team of sleeping OpenMP threads, which end with it.
class SleepingTeam {
 public:
  explicit SleepingTeam(int threads) {
    thread_ = std::thread([this, threads] {
#pragma omp parallel num_threads(threads)
      {
        // OpenMP only creates a team for a region that is not empty.
        volatile int number = omp_get_thread_num();
        static_cast<void>(number);
      }
      std::unique_lock lock(mutex_);
      made_ = true;
      changed_.notify_all();
      changed_.wait(lock, [this] { return ends_; });
    });
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return made_; });
  }
  ~SleepingTeam() {
    {
      const std::lock_guard lock(mutex_);
      ends_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }
  SleepingTeam(const SleepingTeam&) = delete;
  SleepingTeam& operator=(const SleepingTeam&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool made_ = false, ends_ = false;
  std::thread thread_;
};

std::unique_ptr<SleepingTeam> sleeping_team;

void keep_threads_on_cores(bool keep) {
#pragma omp parallel
  {
    if (keep) {
      run_on_core(cores_given()[static_cast<size_t>(omp_get_thread_num())]);
    } else {
      run_on_all_cores();
    }
  }
}

// Seconds that a thread was running, and that it was runnable without a core.
struct ThreadTimes {
  double running = 0, waiting = 0;
};

ThreadTimes times_of(int thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/schedstat");
  int64_t running = 0, waiting = 0;  // Nanoseconds.
  if (!(file >> running >> waiting)) return {};
  return {1e-9 * static_cast<double>(running), 1e-9 * static_cast<double>(waiting)};
}

// The compute threads, and how long they waited.
class ComputeThreads {
 public:
  ComputeThreads() : ids_(static_cast<size_t>(omp_get_max_threads())), times_(ids_.size()) {
#pragma omp parallel
    ids_[static_cast<size_t>(omp_get_thread_num())] = gettid();
    longest_wait();
  }

  // The longest wait of a thread since the last call, minus the CPU time of other threads here.
  double longest_wait() {
    double longest = 0, running = 0;
    for (size_t i = 0; i < ids_.size(); ++i) {
      const ThreadTimes now = times_of(ids_[i]);
      longest = std::max(longest, now.waiting - times_[i].waiting);
      running += now.running - times_[i].running;
      times_[i] = now;
    }
    const double process = process_cpu_seconds();
    const double others = process - process_ - running;
    process_ = process;
    return longest - std::max(0.0, others);
  }

 private:
  std::vector<int> ids_;
  std::vector<ThreadTimes> times_;
  double process_ = 0;
};

}  // namespace

void share_cores(bool share) {
  if (share == shares_cores()) return;
  const int threads = omp_get_max_threads(), cores = static_cast<int>(cores_given().size());
  // One more than the cores that compute threads leave free, plus the one that creates the team.
  const int team = std::max(0, cores - threads) + 2;
  if (share && !can_start_threads(team)) return;
  if (threads == cores) keep_threads_on_cores(share);
  if (share) {
    sleeping_team = std::make_unique<SleepingTeam>(team);
  } else {
    sleeping_team.reset();
  }
}

bool shares_cores() { return sleeping_team != nullptr; }

bool Sharing::look(double now, double waited) {
  constexpr double kShare = 0.1, kShortest = 0.5, kLongest = 40;  // Seconds.
  const bool disturbed = waited > kShare;
  if (disturbed) disturbed_at_ = now;
  if (!shares_ && disturbed) {
    const bool was_too_soon = patience_ > 0 && now - left_at_ < std::max(patience_, 10 * kShortest);
    patience_ = was_too_soon ? std::min(2 * patience_, kLongest) : kShortest;
    shares_ = true;
  } else if (shares_ && now - disturbed_at_ >= patience_) {
    shares_ = false;
    left_at_ = now;
  }
  return shares_;
}

void share_cores_with_others() {
  constexpr double kSeconds = 0.25;  // Between two measurements.
  // Processes of a run may be threads of one program.
  static std::mutex mutex;
  const std::unique_lock lock(mutex, std::try_to_lock);
  if (!lock) return;
  static ComputeThreads threads;
  static Sharing sharing;
  static double looked_at = monotonic_seconds();
  const double now = monotonic_seconds(), elapsed = now - looked_at;
  if (elapsed < kSeconds) return;
  looked_at = now;
  share_cores(sharing.look(now, threads.longest_wait() / elapsed));
}

}  // namespace gallop::kernel
