#include "gallop/kernel/linear_wgrad.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "unit/kernel/errors.h"
#include "unit/kernel/isa_cases.h"

namespace gallop::kernel {
namespace {

struct Case {
  int64_t rows, outputs, inputs;
  Isa isa = best_isa();
};

std::string name_of(const testing::TestParamInfo<Case>& info) {
  const Case& c = info.param;
  return std::to_string(c.rows) + "_rows_" + std::to_string(c.outputs) + "x" +
         std::to_string(c.inputs) + "_isa" + std::to_string(static_cast<int>(c.isa));
}

at::Tensor side(int64_t rows, int64_t columns) {
  return at::randn({rows, columns}).to(at::kBFloat16);
}

class LinearWgradOf : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const Case& c = GetParam();
    if (!has(c.isa)) GTEST_SKIP() << "this machine does not have these instructions";
    at::manual_seed(7);
    dy = side(c.rows, c.outputs);
    x = side(c.rows, c.inputs);
  }
  at::Tensor dy, x;
};

TEST_P(LinearWgradOf, IsAsAccurateAsLibTorch) {
  const auto truth = at::mm(dy.to(at::kDouble).t(), x.to(at::kDouble));
  const auto found = linear_wgrad_by(GetParam().isa, dy, x);
  EXPECT_EQ(found.scalar_type(), at::kBFloat16);
  // Sums in fp32 in another order fall to the other side of a rounding at times.
  EXPECT_LE(error_of(found, truth), 1.02 * error_of(at::mm(dy.t(), x), truth));
}

TEST_P(LinearWgradOf, IsBitIdenticalForAnyNumberOfThreads) {
  const int threads = at::get_num_threads();
  const auto first = linear_wgrad_by(GetParam().isa, dy, x);
  for (const int count : {1, 3, 8, 64}) {
    at::set_num_threads(count);
    EXPECT_TRUE(at::equal(linear_wgrad_by(GetParam().isa, dy, x), first)) << count << " threads";
  }
  at::set_num_threads(threads);
}

std::vector<Case> cases() {
  std::vector<Case> all = {{2048, 768, 256}, {2048, 256, 1024}, {1025, 64, 64}, {513, 16, 16},
                           {512, 48, 80},    {31, 16, 32},      {1, 32, 16},    {545, 144, 16},
                           {700, 16, 400},   {33, 272, 272}};
  for (const Isa isa : kLesserIsas) {
    all.push_back({75, 32, 48, isa});
    all.push_back({520, 48, 32, isa});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Shapes, LinearWgradOf, testing::ValuesIn(cases()), name_of);

TEST(LinearWeight, DoesNotSpreadNonFiniteValues) {
  for (const int64_t inputs : {16, 64}) {
    const auto dy = side(600, 32), x = side(600, inputs);
    x.select(1, 3).select(0, 599).fill_(std::numeric_limits<double>::quiet_NaN());
    const auto found = linear_wgrad(dy, x);
    EXPECT_TRUE(found.select(1, 3).isnan().all().item<bool>());
    EXPECT_EQ(found.isnan().sum().item<int64_t>(), 32);
  }
}

TEST(LinearWeight, IsUsedOnlyWhereItIsFastest) {
  if (best_isa() < Isa::kAvx512Bf16) GTEST_SKIP() << "this machine has no products of bf16";
  EXPECT_TRUE(takes_linear_wgrad(side(512, 32), side(512, 48)));
  EXPECT_FALSE(takes_linear_wgrad(side(64, 32), side(64, 48)));
  EXPECT_FALSE(takes_linear_wgrad(side(512, 65), side(512, 48)));
  EXPECT_FALSE(takes_linear_wgrad(side(512, 32), side(512, 4)));
  EXPECT_FALSE(takes_linear_wgrad(side(512, 32), side(256, 32)));
  EXPECT_FALSE(takes_linear_wgrad(at::randn({512, 32}), at::randn({512, 32})));
  EXPECT_FALSE(takes_linear_wgrad(side(32, 512).t(), side(512, 32)));
  EXPECT_FALSE(takes_linear_wgrad(side(512, 4096), side(512, 1024)));
}

TEST(LinearWeight, RejectsInvalidShapes) {
  EXPECT_THROW(linear_wgrad(side(4, 16), side(5, 16)), InternalError);
  EXPECT_THROW(linear_wgrad(side(4, 10), side(4, 16)), InternalError);
  EXPECT_THROW(linear_wgrad(side(16, 16).t(), side(16, 16)), InternalError);
  EXPECT_THROW(linear_wgrad(at::randn({4, 16}), side(4, 16)), InternalError);
}

}  // namespace
}  // namespace gallop::kernel
