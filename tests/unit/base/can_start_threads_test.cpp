#include "gallop/base/can_start_threads.h"

#include <sys/resource.h>

#include <gtest/gtest.h>

namespace gallop {
namespace {

TEST(CanStartThreads, TellsWhetherTheirStacksFitIntoMemory) {
  EXPECT_TRUE(can_start_threads(0));
  EXPECT_TRUE(can_start_threads(4));
  EXPECT_EXIT(
      {
        // Less than the process has already. Some stacks may be left in glibc's cache.
        const rlimit nothing_more{.rlim_cur = 1, .rlim_max = 1};
        setrlimit(RLIMIT_AS, &nothing_more);
        _exit(can_start_threads(1000) ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace gallop
