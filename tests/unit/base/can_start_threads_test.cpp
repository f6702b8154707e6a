#include "gallop/base/can_start_threads.h"

#include <sys/resource.h>

#include <gtest/gtest.h>

namespace gallop {
namespace {

// Whether threads can start in a process that may map no more memory than it has.
bool can_start_without_memory(int count) {
  const rlimit nothing_more{.rlim_cur = 1, .rlim_max = 1};
  setrlimit(RLIMIT_AS, &nothing_more);
  return can_start_threads(count);
}

TEST(CanStartThreads, FindsOutWhetherTheirStacksFitIntoMemory) {
  EXPECT_TRUE(can_start_threads(0));
  EXPECT_TRUE(can_start_threads(4));
  // More stacks than glibc's cache may hold.
  EXPECT_EXIT(_exit(can_start_without_memory(1000) ? 1 : 0), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace gallop
