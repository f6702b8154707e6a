#include "gallop/kernel/shared_cores.h"

#include <sched.h>

#include <filesystem>
#include <iterator>
#include <thread>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "gallop/base/affinity.h"

namespace gallop::kernel {
namespace {

int64_t threads_of_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

int cores_of_thread() {
  cpu_set_t set;
  EXPECT_EQ(sched_getaffinity(0, sizeof(set), &set), 0);
  return CPU_COUNT(&set);
}

// The cores of every thread that LibTorch computes with.
std::vector<int> cores_of_threads() {
  std::vector<int> cores(static_cast<size_t>(at::get_num_threads()));
  at::parallel_for(0, at::get_num_threads(), 1, [&](int64_t begin, int64_t) {
    cores[static_cast<size_t>(begin)] = cores_of_thread();
  });
  return cores;
}

TEST(SharedCores, KeepResultsAndLeaveNoThread) {
  const at::Tensor a = at::randn({300, 300}), b = at::randn({300, 300});
  const at::Tensor wanted = a.mm(b);
  const int64_t threads = threads_of_process();
  EXPECT_FALSE(shares_cores());
  for (int turn = 0; turn < 20; ++turn) {
    share_cores(true);
    share_cores(true);
    EXPECT_TRUE(shares_cores());
    EXPECT_GT(threads_of_process(), threads);
    EXPECT_TRUE(at::equal(a.mm(b), wanted));
    share_cores(false);
    EXPECT_FALSE(shares_cores());
    // OpenMP's threads end by themselves.
    while (threads_of_process() > threads) std::this_thread::yield();
  }
}

// Asked of a thread of its own: those that LibTorch makes stay where the one that makes them is.
bool system_keeps_threads() {
  bool kept = false;
  std::thread([&kept] {
    run_on_core(cores_given().front());
    kept = cores_of_thread() == 1;
  }).join();
  return kept;
}

TEST(SharedCores, ArePinnedToOneThreadEachIfThereAreAsMany) {
  if (!system_keeps_threads()) GTEST_SKIP() << "the system keeps no thread on a core";
  const int threads = at::get_num_threads(), cores = static_cast<int>(cores_given().size());
  at::set_num_threads(cores);
  const std::vector<int> all(cores_given().size(), cores);
  EXPECT_EQ(cores_of_threads(), all);
  share_cores(true);
  EXPECT_EQ(cores_of_threads(), std::vector<int>(all.size(), 1));
  share_cores(false);
  EXPECT_EQ(cores_of_threads(), all);
  at::set_num_threads(threads);
}

TEST(SharedCores, AreNotPinnedIfThereAreFewerThreads) {
  if (cores_given().size() == 1) GTEST_SKIP() << "one core";
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  share_cores(true);
  EXPECT_EQ(cores_of_threads(), std::vector<int>{static_cast<int>(cores_given().size())});
  share_cores(false);
  at::set_num_threads(threads);
}

// Looks a quarter of a second apart, of which those before `until` were disturbed; returns when
// cores stopped to be shared.
double end_of_sharing(Sharing& sharing, double& now, double until) {
  EXPECT_TRUE(sharing.look(now, 0.5));
  do {
    now += 0.25;
  } while (sharing.look(now, now < until ? 0.5 : 0));
  return now;
}

TEST(Sharing, StartsWithContentionAndEndsHalfASecondAfterIt) {
  Sharing sharing;
  EXPECT_FALSE(sharing.look(1, 0.05));
  double now = 2;
  EXPECT_EQ(end_of_sharing(sharing, now, 5), 4.75 + 0.5);
  EXPECT_FALSE(sharing.look(now + 1, 0));
}

TEST(Sharing, BacksOffExponentiallyDuringContention) {
  Sharing sharing;
  double now = 0, lasted = 0;
  for (const double wanted : {0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 40.0, 40.0}) {
    now += 0.25;
    const double begin = now;
    lasted = end_of_sharing(sharing, now, begin) - begin;
    EXPECT_EQ(lasted, wanted);
  }
  now += 100;
  const double begin = now;
  EXPECT_EQ(end_of_sharing(sharing, now, begin) - begin, 0.5);
}

}  // namespace
}  // namespace gallop::kernel
