#include "gallop/schedule/lr_scaling.h"

#include <string>

#include <gtest/gtest.h>

#include "gallop/base/error.h"

namespace gallop::schedule {
namespace {

TEST(LrScaling, ScalesWithTheBatchByItsRule) {
  EXPECT_EQ(LrScaling{}.factor(12), 1);
  EXPECT_EQ((LrScaling{.rule = "linear", .batch = 256}).factor(256), 1);
  EXPECT_EQ((LrScaling{.rule = "linear", .batch = 256}).factor(1024), 4);
  EXPECT_EQ((LrScaling{.rule = "linear", .batch = 256}).factor(64), 0.25);
  EXPECT_EQ((LrScaling{.rule = "sqrt", .batch = 256}).factor(1024), 2);
  EXPECT_EQ((LrScaling{.rule = "sqrt", .batch = 256}).factor(64), 0.5);
  EXPECT_DOUBLE_EQ((LrScaling{.rule = "sqrt", .batch = 100}).factor(200), 1.4142135623730951);
}

std::string refusal(const LrScaling& scaling, bool lr_is_auto) {
  try {
    check(scaling, lr_is_auto);
  } catch (const UsageError& error) {
    return error.what();
  }
  return {};
}

TEST(LrScaling, RejectsContradictions) {
  EXPECT_EQ(refusal({}, false), "");
  EXPECT_EQ(refusal({}, true), "");
  EXPECT_EQ(refusal({.rule = "sqrt", .batch = 16}, false), "");
  EXPECT_NE(refusal({.rule = "sqrt", .batch = {}}, false).find("optimizer.lr_batch"),
            std::string::npos);
  EXPECT_NE(refusal({.rule = "none", .batch = 16}, false).find("optimizer.lr_scaling is none"),
            std::string::npos);
  EXPECT_NE(refusal({.rule = "linear", .batch = 16}, true).find("optimizer.lr: auto"),
            std::string::npos);
}

}  // namespace
}  // namespace gallop::schedule
