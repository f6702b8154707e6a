#include "gallop/track/cross_validation.h"

#include <cmath>

#include <gtest/gtest.h>

#include "unit/track/runs_of_test.h"

namespace gallop::track {
namespace {

std::string recipe(int fold, const std::string& lr = "0.1", const std::string& precision = "fp32") {
  return "data: {name: folder, folds: 3, fold: " + std::to_string(fold) +
         "}\noptimizer: {lr: " + lr + "}\ntrain: {precision: " + precision + "}\n";
}

TEST(CrossValidation, HasMeanAndDeviationOfTheFoldsOfOneRecipe) {
  RunsOfTest runs;
  const fs::path first = runs.add("a-0", recipe(0), {0.5, 0.9});
  EXPECT_FALSE(cross_validation_of(first)) << "no other fold so far";
  runs.add("a-2", recipe(2, "0.1", "bf16"), {0.7});
  runs.add("other", recipe(1, "0.2"), {0.1});
  runs.add("unfinished", recipe(1), {0.2}, /*finished=*/false);
  runs.add("again", recipe(0), {0.3});
  const auto partial = cross_validation_of(first);
  ASSERT_TRUE(partial);
  EXPECT_FALSE(partial->is_complete());
  EXPECT_EQ(partial->runs, (std::vector<std::string>{"a-0", "a-2"}));
  runs.add("a-1", recipe(1), {0.4, 0.8});
  const auto all = cross_validation_of(first);
  ASSERT_TRUE(all && all->is_complete());
  EXPECT_EQ(all->runs, (std::vector<std::string>{"a-0", "a-1", "a-2"}));
  // The last evaluations count, not training steps.
  ASSERT_EQ(all->metrics.size(), 1U);
  EXPECT_NEAR(all->metrics.at("accuracy").mean, 0.8, 1e-12);
  EXPECT_NEAR(all->metrics.at("accuracy").deviation, 0.1, 1e-12);
  EXPECT_EQ(describe(all->metrics), "accuracy 0.8 ± 0.1");
}

TEST(CrossValidation, RunsWithoutFoldsHaveNone) {
  RunsOfTest runs;
  const fs::path run = runs.add("plain", "data: {name: folder}\n", {0.5});
  runs.add("fold", recipe(0), {0.5});
  EXPECT_FALSE(cross_validation_of(run));
}

}  // namespace
}  // namespace gallop::track
