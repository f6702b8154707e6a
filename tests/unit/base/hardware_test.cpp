#include "gallop/base/hardware.h"

#include <cstdlib>
#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace gallop {
namespace {

constexpr const char* kVariable = "OMP_NUM_THREADS";

class HardwareThreads : public testing::TestWithParam<const char*> {
 protected:
  HardwareThreads() {
    if (const char* value = std::getenv(kVariable)) before_ = value;
  }
  ~HardwareThreads() override {
    if (before_) setenv(kVariable, before_->c_str(), 1);
    if (!before_) unsetenv(kVariable);
  }

  // The threads that read_hardware() reports with this OMP_NUM_THREADS.
  static int threads_with(const char* value) {
    setenv(kVariable, value, 1);
    return read_hardware().threads;
  }

 private:
  std::optional<std::string> before_;
};

TEST_F(HardwareThreads, AreLimitedByOmpNumThreads) {
  EXPECT_EQ(threads_with("1"), 1);
  EXPECT_EQ(threads_with("1,4"), 1) << "the first number is that of the outermost level";
}

TEST_F(HardwareThreads, AreAsManyAsCoresWithoutALimit) {
  unsetenv(kVariable);
  const Hardware hardware = read_hardware();
  EXPECT_EQ(hardware.threads, hardware.cores);
}

TEST_F(HardwareThreads, AreNoMoreThanCores) {
  EXPECT_EQ(threads_with("100000"), read_hardware().cores);
}

TEST_P(HardwareThreads, IgnoreInvalidLimits) {
  EXPECT_EQ(threads_with(GetParam()), read_hardware().cores);
}

INSTANTIATE_TEST_SUITE_P(Values, HardwareThreads, testing::Values("", "0", "-3", "many"));

}  // namespace
}  // namespace gallop
