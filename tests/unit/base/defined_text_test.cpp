#include "gallop/base/defined_text.h"

#include <limits>

#include <gtest/gtest.h>

namespace gallop {
namespace {

TEST(DefinedText, HasNoSignOfNan) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(defined_text(-nan, "{:.4f}"), "undefined");
  EXPECT_EQ(defined_text(nan, "{:.5g}"), "undefined");
  EXPECT_EQ(defined_text(1.25, "{:.1f} %"), "1.2 %");
  EXPECT_EQ(defined_text(-std::numeric_limits<double>::infinity(), "{:.4f}"), "-inf");
}

}  // namespace
}  // namespace gallop
