#include "gallop/tune/samplers/tpe_history.h"

#include <limits>

#include <gtest/gtest.h>

#include "gallop/tune/pareto/pareto.h"
#include "gallop/tune/random.h"
#include "unit/tune/test_study.h"

namespace gallop::tune {
namespace {

std::vector<double> random_losses(Random& random, size_t objectives, bool has_ties) {
  std::vector<double> losses;
  for (size_t i = 0; i < objectives; ++i) {
    const double loss = has_ties ? static_cast<double>(random.below(8)) / 4 : random.uniform();
    losses.push_back(random.below(60) == 0 ? std::numeric_limits<double>::quiet_NaN() : loss);
  }
  return losses;
}

/// The tenth of the complete trials that is best when all are ranked; equal ones as they come by
/// their first loss.
std::set<int64_t> good_of_all(const Study& study) {
  std::vector<int64_t> trials;
  for (const Trial& trial : study.trials()) {
    if (trial.state == TrialState::kComplete) trials.push_back(trial.number);
  }
  const auto first_loss = [&](int64_t trial) {
    const double loss = study.trials()[static_cast<size_t>(trial)].losses[0];
    return loss == loss ? loss : std::numeric_limits<double>::infinity();
  };
  std::stable_sort(trials.begin(), trials.end(),
                   [&](int64_t a, int64_t b) { return first_loss(a) < first_loss(b); });
  LossRows losses;
  for (const int64_t trial : trials) {
    losses.push_back(study.trials()[static_cast<size_t>(trial)].losses);
  }
  std::set<int64_t> good;
  for (const size_t index : best_rows(losses, (trials.size() + 9) / 10)) good.insert(trials[index]);
  return good;
}

TEST(TpeHistory, GoodTrialsAreExactAfterAnyChanges) {
  for (int64_t trial = 0; trial < 8; ++trial) {
    const size_t objectives = 2 + static_cast<size_t>(trial) % 3;
    SCOPED_TRACE(testing::Message() << objectives << " objectives, trial " << trial);
    Random random(3, trial);
    TestStudy test(Space({{"x", Interval{}}}, {}), objectives, 0);
    TpeHistory history(objectives, true);
    for (int i = 0; i < 400; ++i) {
      const int64_t number = test.start({0.5});
      history.change(number);
      test.end(number, TrialState::kComplete, random_losses(random, objectives, trial % 2 == 0));
      if (random.below(15) == 0) {
        const auto some = static_cast<int64_t>(random.below(test.study.trials().size()));
        if (test.study.trials()[static_cast<size_t>(some)].state == TrialState::kComplete) {
          test.queue_again(some);
          history.change(some);
        }
      }
      if (random.below(3) == 0) continue;  // Several changes at once.
      history.update(test.study);
      ASSERT_EQ(history.good(), good_of_all(test.study)) << "after " << number;
    }
  }
}

}  // namespace
}  // namespace gallop::tune
