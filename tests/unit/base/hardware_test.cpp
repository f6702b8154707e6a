#include "gallop/base/hardware.h"

#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "unit/variable.h"

namespace gallop {
namespace {

// The threads that read_hardware() reports with this OMP_NUM_THREADS; without a value it is unset.
int threads_with(const std::optional<std::string>& value) {
  const Variable limit("OMP_NUM_THREADS", value);
  return read_hardware().threads;
}

TEST(HardwareThreads, AreLimitedByOmpNumThreads) {
  EXPECT_EQ(threads_with("1"), 1);
  EXPECT_EQ(threads_with("1,4"), 1) << "the first number is that of the outermost level";
}

TEST(HardwareThreads, AreAsManyAsCoresWithoutALimit) {
  EXPECT_EQ(threads_with(std::nullopt), read_hardware().cores);
}

TEST(HardwareThreads, AreNoMoreThanCores) {
  EXPECT_EQ(threads_with("100000"), read_hardware().cores);
}

TEST(HardwareThreads, IgnoreInvalidLimits) {
  for (const char* value : {"", "0", "-3", "many"}) {
    EXPECT_EQ(threads_with(value), read_hardware().cores) << value;
  }
}

}  // namespace
}  // namespace gallop
