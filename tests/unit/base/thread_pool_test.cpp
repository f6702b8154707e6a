#include "gallop/base/thread_pool.h"

#include <sched.h>

#include <atomic>
#include <csignal>
#include <latch>

#include <gtest/gtest.h>

#include "gallop/base/affinity.h"

namespace gallop {
namespace {

TEST(ThreadPool, RunsAllTasksBeforeItsDestructorReturns) {
  std::atomic<int> count{0};
  {
    ThreadPool pool(3, "test");
    EXPECT_EQ(pool.size(), 3);
    for (int i = 0; i < 1000; ++i) pool.submit([&] { ++count; });
  }
  EXPECT_EQ(count, 1000);
}

TEST(ThreadPool, RunsOneTaskPerThreadConcurrently) {
  ThreadPool pool(4, "test");
  std::latch together(4);  // No thread continues before all four have arrived.
  for (int i = 0; i < 4; ++i) pool.submit([&] { together.arrive_and_wait(); });
  together.wait();
}

TEST(ThreadPool, DoesNotInheritTheAffinityOfTheCreatingThread) {
  const auto cores = [] {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : -1;
  };
  run_on_core(cores_given().back());
  if (cores() != 1) GTEST_SKIP() << "the system keeps no thread on a core";
  {
    ThreadPool pool(1, "test");
    pool.submit([&] { EXPECT_EQ(cores(), std::ssize(cores_given())); });
  }
  run_on_all_cores();
  EXPECT_EQ(cores(), std::ssize(cores_given()));
}

TEST(ThreadPool, OneThreadKeepsTheOrder) {
  std::vector<int> seen;
  {
    ThreadPool pool(1, "test");
    for (int i = 0; i < 100; ++i) pool.submit([&seen, i] { seen.push_back(i); });
  }
  for (int i = 0; i < 100; ++i) EXPECT_EQ(seen[static_cast<size_t>(i)], i);
}

TEST(ThreadPool, BlocksSignalsInItsThreads) {
  sigset_t blocked;
  sigemptyset(&blocked);
  {
    ThreadPool pool(1, "test");
    pool.submit([&] { pthread_sigmask(SIG_BLOCK, nullptr, &blocked); });
  }
  EXPECT_EQ(sigismember(&blocked, SIGTERM), 1);
  EXPECT_EQ(sigismember(&blocked, SIGINT), 1);
}

}  // namespace
}  // namespace gallop
