#include "gallop/kernel/shared_cores.h"

#include <omp.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <fstream>
#include <memory>
#include <mutex>
#include <thread>

#include "gallop/base/clock.h"

namespace gallop::kernel {

namespace {

// A thread with a team of OpenMP threads that sleep. They go when it ends.
class SleepingTeam {
 public:
  explicit SleepingTeam(int threads) {
    thread_ = std::thread([this, threads] {
#pragma omp parallel num_threads(threads)
      {
        // A team is made for a region that does something.
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

// How long this thread was ready to run but had no core; 0 where the system does not tell.
double seconds_without_core() {
  std::ifstream file("/proc/thread-self/schedstat");
  int64_t running = 0, waiting = 0;  // Nanoseconds.
  return file >> running >> waiting ? 1e-9 * static_cast<double>(waiting) : 0;
}

}  // namespace

void yield_cores(bool yield) {
  if (yield == yields_cores()) return;
  if (!yield) {
    sleeping_team.reset();
    return;
  }
  // One more than the cores that the threads which compute leave over, and the one that makes it.
  const int left = std::max(0, omp_get_num_procs() - omp_get_max_threads());
  sleeping_team = std::make_unique<SleepingTeam>(left + 2);
}

bool yields_cores() { return sleeping_team != nullptr; }

void yield_cores_if_shared() {
  constexpr double kSeconds = 0.25;  // Between two looks.
  constexpr double kShare = 0.1;     // Of the time without a core.
  constexpr int kCalmLooks = 20;
  static double looked_at = monotonic_seconds();
  static double seen = seconds_without_core();
  static int calm_looks = 0;
  const double now = monotonic_seconds();
  if (now - looked_at < kSeconds) return;
  const double waited = seconds_without_core();
  const bool is_shared = waited - seen > kShare * (now - looked_at);
  looked_at = now;
  seen = waited;
  calm_looks = is_shared ? 0 : calm_looks + 1;
  if (is_shared) yield_cores(true);
  if (calm_looks == kCalmLooks) yield_cores(false);
}

}  // namespace gallop::kernel
