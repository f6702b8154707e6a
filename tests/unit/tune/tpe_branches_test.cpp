#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "gallop/tune/samplers/parzen.h"
#include "gallop/tune/samplers/tpe.h"
#include "gallop/tune/samplers/tpe_history.h"
#include "unit/tune/test_study.h"

namespace gallop::tune {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

TEST(ParzenEstimator, WeightsKernelsByTheLikelihoodOfTheContext) {
  const Space space({{"kind", Choices{{"0", "1"}, {1, 3}}},
                     {"x", Interval{.low = 0, .high = 1}, Condition{0, {0, 1}}}},
                    {});
  ParzenEstimator estimator(space, {1}, ParzenEstimator::Weights::kFading, {0});
  estimator.insert(0, {0, 0.1});
  estimator.insert(1, {1, 0.9});
  estimator.insert(2, {0, 0.2});
  // With three trials, a third of a choice's kernel is the prior. A kernel of choice 1 makes 0
  // likely by 1/3 * 1/4, and 1 by 1/3 * 3/4 + 2/3.
  estimator.set_context({0, kNan});
  const double less = (1.0 / 12) / (1.0 / 4 + 2.0 / 3), sum = 3 + less;
  const std::vector<double> of_0 = estimator.weights();
  EXPECT_DOUBLE_EQ(of_0[0], 1 / sum);
  EXPECT_DOUBLE_EQ(of_0[1], less / sum);
  EXPECT_DOUBLE_EQ(of_0[2], 1 / sum);
  EXPECT_DOUBLE_EQ(of_0[3], 1 / sum);

  estimator.set_context({1, kNan});
  const double others = (1.0 / 4) / (1.0 / 12 + 2.0 / 3);
  EXPECT_DOUBLE_EQ(estimator.weights()[1], 1 / (2 + 2 * others));
  EXPECT_DOUBLE_EQ(estimator.weights()[2], others / (2 + 2 * others));
  const double with_1 = estimator.log_densities({{1, 0.9}})[0];
  estimator.set_context({0, kNan});
  EXPECT_GT(with_1, estimator.log_densities({{0, 0.9}})[0]);

  estimator.erase(1);
  estimator.set_context({0, kNan});
  EXPECT_DOUBLE_EQ(estimator.weights()[0], 1.0 / 3);
}

TEST(TpeHistory, CombinesGoodTrialsOfAnotherHistory) {
  TestStudy test(TestStudy::settings_of(Space({{"x", Interval{}}}, {})));
  TpeHistory history(1, /*counts_running=*/true);
  for (int64_t trial = 0; trial < 5; ++trial) {
    test.complete(test.start({0}), static_cast<double>(trial));
    if (trial < 4) history.change(trial);
  }
  const auto side_of = [](const std::vector<TpeHistory::Move>& moves, int64_t trial) {
    for (const auto& move : moves) {
      if (move.trial == trial) return move.to;
    }
    return TpeHistory::Side::kNone;
  };
  using Side = TpeHistory::Side;
  const auto moves = history.update(test.study, {2, 4});  // It does not have trial 4.
  EXPECT_EQ(side_of(moves, 0), Side::kGood);
  EXPECT_EQ(side_of(moves, 1), Side::kRest);
  EXPECT_EQ(side_of(moves, 2), Side::kGood);
  EXPECT_EQ(side_of(moves, 3), Side::kRest);
  EXPECT_EQ(side_of(moves, 4), Side::kNone);
  EXPECT_EQ(history.finished(), 4u);

  const auto later = history.update(test.study, {1});
  EXPECT_EQ(side_of(later, 1), Side::kGood);
  EXPECT_EQ(side_of(later, 2), Side::kRest);
  EXPECT_EQ(later.size(), 2u);
}

/// How many of 50 points with this kind have an x within a tenth of `best`.
int near(const TestStudy& test, double kind, double best) {
  TpeChoice choice({}, test.study.settings(), {false, true});
  int count = 0;
  for (int64_t i = 0; i < 50; ++i) {
    Random random(1, i);
    count += std::abs((*choice.choose(test.study, {kind, kNan}, random))[1] - best) < 0.1;
  }
  return count;
}

TEST(TpeSampler, LearnsInABranchWithoutGoodTrials) {
  const Space space({{"kind", Choices{{"0", "1"}}}, {"x", Interval{}, Condition{0, {1}}}}, {});
  TestStudy test(TestStudy::settings_of(space));
  for (int64_t i = 0; i < 100; ++i) {
    const double x = Random(3, i).uniform();
    if (i % 2 == 0) {
      test.complete(test.start({0, kNan}), 0.01 * x);
    } else {
      test.complete(test.start({1, x}), 1 + std::pow(x - 0.7, 2));
    }
  }
  EXPECT_GE(near(test, 1, 0.7), 40);  // 10 at random.
}

TEST(TpeSampler, LearnsConditionallyOnTheChoice) {
  const Space space({{"kind", Choices{{"0", "1", "2"}}}, {"x", Interval{}, Condition{0, {0, 1}}}},
                    {});
  TestStudy test(TestStudy::settings_of(space));
  const auto best = [](double kind) { return kind == 0 ? 0.2 : 0.8; };
  for (int64_t i = 0; i < 100; ++i) {
    const double x = Random(4, i).uniform();
    const auto kind = static_cast<double>(i % 2);
    test.complete(test.start({kind, x}), std::pow(x - best(kind), 2));
  }
  for (const double kind : {0.0, 1.0}) {
    EXPECT_GE(near(test, kind, best(kind)), 40);
    EXPECT_LE(near(test, kind, 1 - best(kind)), 2);
  }
}

}  // namespace
}  // namespace gallop::tune
