#include "gallop/kernel/shared_cores.h"

#include <filesystem>
#include <iterator>
#include <thread>

#include <ATen/ops/equal.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

namespace gallop::kernel {
namespace {

int64_t threads_of_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

TEST(SharedCores, YieldingChangesNoResultAndLeavesNoThread) {
  const at::Tensor a = at::randn({300, 300}), b = at::randn({300, 300});
  const at::Tensor wanted = a.mm(b);
  const int64_t threads = threads_of_process();
  EXPECT_FALSE(yields_cores());
  for (int turn = 0; turn < 20; ++turn) {
    yield_cores(true);
    yield_cores(true);
    EXPECT_TRUE(yields_cores());
    EXPECT_GT(threads_of_process(), threads);
    EXPECT_TRUE(at::equal(a.mm(b), wanted));
    yield_cores(false);
    EXPECT_FALSE(yields_cores());
    // OpenMP's threads end by themselves.
    while (threads_of_process() > threads) std::this_thread::yield();
  }
}

}  // namespace
}  // namespace gallop::kernel
