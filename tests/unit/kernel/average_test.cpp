#include "gallop/kernel/average.h"

#include <cmath>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/kernel/cpu/average.h"
#include "unit/kernel/isa_cases.h"

namespace gallop::kernel {
namespace {

using Kind = AverageRule::Kind;

at::Tensor fp32(double value) { return at::scalar_tensor(value, at::TensorOptions(at::kFloat)); }

// The formula, element by element, for values given step by step.
std::vector<double> plain_average(const AverageRule& rule, double start,
                                  const std::vector<double>& values) {
  double average = start, n = 0;
  std::vector<double> averages;
  for (size_t t = 1; t <= values.size(); ++t) {
    const int64_t after = static_cast<int64_t>(t) - rule.start;
    if (after >= 0 && after % rule.every == 0) {
      const double now = values[t - 1];
      if (rule.kind == Kind::kEqual) average = (average * n + now) / (n + 1);
      if (rule.kind == Kind::kShare) {
        const double progress =
            std::min(1., static_cast<double>(t) / static_cast<double>(rule.length));
        const double kept = (1 - rule.number) * std::pow(progress, rule.power);
        average = kept * average + (1 - kept) * now;
      }
      if (rule.kind == Kind::kDecay) {
        const double d = rule.warmup ? std::min(rule.number, (1 + n) / (10 + n)) : rule.number;
        average = n == 0 ? now : d * average + (1 - d) * now;
      }
      n += 1;
    }
    averages.push_back(average);
  }
  return averages;
}

std::vector<AverageRule> rules() {
  return {{.kind = Kind::kEqual, .start = 3, .every = 2},
          {.kind = Kind::kEqual, .start = 0, .every = 1},
          {.kind = Kind::kDecay, .number = 0.9, .start = 1, .every = 1},
          {.kind = Kind::kDecay, .number = 0.999, .warmup = true, .start = 2, .every = 3},
          {.kind = Kind::kShare, .number = 0.5, .every = 5},
          {.kind = Kind::kShare, .number = 1, .every = 1},
          {.kind = Kind::kShare, .number = 0.2, .every = 2, .power = 3, .length = 10},
          {.kind = Kind::kShare, .number = 0.5, .every = 1, .power = 0.5, .length = 20}};
}

// Sizes around vectors and chunks, by our kernel in fp32 and by LibTorch's operators in fp64.
TEST(Average, FollowsItsFormulaForAnySize) {
  for (const AverageRule& rule : rules()) {
    for (const auto type : {at::kFloat, at::kDouble}) {
      std::vector<at::Tensor> starts, averages, values;
      for (const int64_t size : {1, 15, 16, 17, 16384, 16391, 40000}) {
        starts.push_back(at::randn({size}, at::kDouble));
        averages.push_back(starts.back().to(type).clone());
        values.push_back(at::zeros({size}, type));
      }
      const at::Tensor counts = at::zeros({2}, at::kDouble);
      std::vector<double> given;
      for (int t = 1; t <= 12; ++t) {
        given.push_back(std::sin(t));
        for (const at::Tensor& value : values) value.fill_(given.back());
        average({.averages = averages, .values = values, .counts = counts, .rule = rule});
        for (size_t i = 0; i < starts.size(); ++i) {
          // Linear in its start value.
          const double zero = plain_average(rule, 0, given).back();
          const double one = plain_average(rule, 1, given).back();
          const at::Tensor wanted = starts[i] * (one - zero) + zero;
          const double bound = type == at::kFloat ? 1e-6 : 1e-13;
          EXPECT_TRUE(at::allclose(averages[i].to(at::kDouble), wanted, bound, bound))
              << "step " << t << ", size " << starts[i].numel();
        }
      }
      EXPECT_EQ(counts[0].item<double>(), 12);
    }
  }
}

TEST(Average, SetsBothToTheAverageWhenDue) {
  const AverageRule rule{.kind = Kind::kShare, .number = 0.5, .every = 2};
  for (const auto type : {at::kFloat, at::kDouble}) {
    std::vector<at::Tensor> slow = {at::full({100}, 1, type)}, fast = {at::full({100}, 3, type)};
    const at::Tensor counts = at::zeros({2}, at::kDouble);
    const AverageStep step{.averages = slow, .values = fast, .counts = counts, .rule = rule};
    const auto version = fast[0]._version();
    average_both(step);
    EXPECT_TRUE(at::equal(slow[0], at::full({100}, 1, type)));
    EXPECT_TRUE(at::equal(fast[0], at::full({100}, 3, type)));
    average_both(step);
    EXPECT_TRUE(at::equal(slow[0], at::full({100}, 2, type)));
    EXPECT_TRUE(at::equal(fast[0], at::full({100}, 2, type)));
    EXPECT_GT(fast[0]._version(), version);
    EXPECT_TRUE(at::equal(counts, at::tensor({2., 1.})));
  }
}

TEST(Average, IgnoresSkippedUpdates) {
  const AverageRule rule{.kind = Kind::kEqual, .start = 2, .every = 1};
  for (const auto type : {at::kFloat, at::kDouble}) {
    std::vector<at::Tensor> averages = {at::zeros({9}, type)}, values = {at::full({9}, 4, type)};
    const at::Tensor counts = at::zeros({2}, at::kDouble);
    for (const double found_inf : {0., 1., std::nan("")}) {
      average({.averages = averages,
               .values = values,
               .counts = counts,
               .found_inf = fp32(found_inf),
               .rule = rule});
    }
    EXPECT_TRUE(at::equal(counts, at::tensor({1., 0.})));
    EXPECT_TRUE(at::equal(averages[0], at::zeros({9}, type)));
    average({.averages = averages,
             .values = values,
             .counts = counts,
             .found_inf = fp32(0),
             .rule = rule});
    EXPECT_TRUE(at::equal(counts, at::tensor({2., 1.})));
    EXPECT_TRUE(at::equal(averages[0], values[0]));
  }
}

TEST(Average, IsBitIdenticalForAnyNumberOfThreads) {
  const int threads = at::get_num_threads();
  std::vector<at::Tensor> results;
  const at::Tensor start = at::randn({100'003}), value = at::randn({100'003});
  for (const int count : {1, 2, 3}) {
    at::set_num_threads(count);
    std::vector<at::Tensor> averages = {start.clone()}, values = {value};
    average({.averages = averages,
             .values = values,
             .counts = at::zeros({2}, at::kDouble),
             .rule = {.kind = Kind::kShare, .number = 0.3}});
    results.push_back(averages[0]);
    EXPECT_TRUE(at::equal(results.back(), results.front()));
  }
  at::set_num_threads(threads);
}

TEST(Average, RejectsListsOfDifferentSizes) {
  std::vector<at::Tensor> one = {at::zeros({3})}, two = {at::zeros({3}), at::zeros({3})};
  const at::Tensor counts = at::zeros({2}, at::kDouble);
  EXPECT_THROW(average({.averages = one, .values = two, .counts = counts}), InternalError);
  EXPECT_THROW(average({.averages = one, .values = one, .counts = counts, .rule = {.every = 0}}),
               InternalError);
}

class AverageIn : public IsaTest {};

TEST_P(AverageIn, EveryInstructionSetFollowsTheFormula) {
  const AverageKernels kernels = kernels_for<AverageKernels>(GetParam());
  for (const float share : {0.001F, 0.3F, 0.5F, 0.9F, 1.F}) {
    const at::Tensor start = at::randn({37}), value = at::randn({37});
    const at::Tensor wanted =
        start.to(at::kDouble) + double{share} * (value.to(at::kDouble) - start.to(at::kDouble));
    const at::Tensor average = start.clone(), slow = start.clone(), fast = value.clone();
    kernels.average(average.mutable_data_ptr<float>(), value.const_data_ptr<float>(), share, 37);
    kernels.average_both(slow.mutable_data_ptr<float>(), fast.mutable_data_ptr<float>(), share, 37);
    EXPECT_TRUE(at::allclose(average.to(at::kDouble), wanted, 1e-6, 1e-6));
    EXPECT_TRUE(at::equal(slow, average) && at::equal(fast, average));
    if (share == 1) {
      EXPECT_TRUE(at::equal(average, value));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, AverageIn, every_isa());

}  // namespace
}  // namespace gallop::kernel
