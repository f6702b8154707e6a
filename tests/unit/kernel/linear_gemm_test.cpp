#include "gallop/kernel/linear_gemm.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/kernel/isa.h"
#include "unit/kernel/errors.h"

namespace gallop::kernel {
namespace {

struct Case {
  int64_t rows, inner, outputs;
  bool transposed_weight;
};

std::string name_of(const testing::TestParamInfo<Case>& info) {
  const Case& c = info.param;
  return std::to_string(c.rows) + "_rows_" + std::to_string(c.inner) + "_to_" +
         std::to_string(c.outputs) + (c.transposed_weight ? "_turned" : "");
}

at::Tensor side(int64_t rows, int64_t columns) {
  return at::randn({rows, columns}).to(at::kBFloat16);
}

class LinearGemmOf : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (best_isa() < Isa::kAmx) GTEST_SKIP() << "this machine has no tiles";
    const Case& c = GetParam();
    at::manual_seed(7);
    x = side(c.rows, c.inner);
    weight = c.transposed_weight ? side(c.outputs, c.inner) : side(c.inner, c.outputs);
    right = c.transposed_weight ? weight.t() : weight;
  }
  at::Tensor x, weight, right;
};

TEST_P(LinearGemmOf, IsAsAccurateAsLibTorch) {
  const auto truth = at::mm(x.to(at::kDouble), right.to(at::kDouble));
  const auto found = linear_gemm(x, weight, GetParam().transposed_weight);
  EXPECT_EQ(found.scalar_type(), at::kBFloat16);
  // Sums in fp32 in another order fall to the other side of a rounding at times.
  EXPECT_LE(error_of(found, truth), 1.02 * error_of(at::mm(x, right), truth));
}

TEST_P(LinearGemmOf, IsBitIdenticalForAnyNumberOfThreads) {
  const int threads = at::get_num_threads();
  const auto first = linear_gemm(x, weight, GetParam().transposed_weight);
  for (const int count : {1, 3, 8, 64}) {
    at::set_num_threads(count);
    EXPECT_TRUE(at::equal(linear_gemm(x, weight, GetParam().transposed_weight), first)) << count;
  }
  at::set_num_threads(threads);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const bool transposed_weight : {false, true}) {
    for (const auto& [rows, inner, outputs] :
         std::vector<std::array<int64_t, 3>>{{2048, 256, 768},
                                             {256, 1024, 256},
                                             {1, 32, 32},
                                             {63, 64, 96},
                                             {65, 288, 32},
                                             {129, 256, 64},
                                             {300, 544, 160},
                                             {1000, 32, 544}}) {
      all.push_back({rows, inner, outputs, transposed_weight});
    }
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Shapes, LinearGemmOf, testing::ValuesIn(cases()), name_of);

TEST(LinearGemm, DoesNotSpreadNonFiniteValues) {
  if (best_isa() < Isa::kAmx) GTEST_SKIP() << "this machine has no tiles";
  const auto x = side(70, 64), weight = side(96, 64);
  x.select(0, 69).select(0, 5).fill_(std::numeric_limits<double>::quiet_NaN());
  weight.select(0, 3).select(0, 7).fill_(std::numeric_limits<double>::infinity());
  const auto found = linear_gemm(x, weight, /*transposed_weight=*/true);
  EXPECT_TRUE(found.select(0, 69).isnan().all().item<bool>());
  EXPECT_EQ(found.isfinite().logical_not().sum().item<int64_t>(), 96 + 69);
}

TEST(LinearGemm, IsUsedOnlyWhereItIsFastest) {
  if (best_isa() < Isa::kAmx) GTEST_SKIP() << "this machine has no tiles";
  EXPECT_TRUE(takes_linear_gemm(side(512, 64), side(96, 64), true));
  EXPECT_TRUE(takes_linear_gemm(side(512, 64), side(64, 96), false));
  EXPECT_FALSE(takes_linear_gemm(side(512, 64), side(96, 64), false));
  EXPECT_FALSE(takes_linear_gemm(side(128, 64), side(96, 64), true));
  EXPECT_FALSE(takes_linear_gemm(side(512, 64), side(80, 64), true));
  EXPECT_FALSE(takes_linear_gemm(side(512, 48), side(96, 48), true));
  EXPECT_FALSE(takes_linear_gemm(side(64, 512).t(), side(96, 64), true));
  EXPECT_FALSE(takes_linear_gemm(at::randn({512, 64}), at::randn({96, 64}), true));
  EXPECT_FALSE(takes_linear_gemm(side(512, 768), side(768, 768), true));
}

TEST(LinearGemm, RejectsInvalidShapes) {
  EXPECT_THROW(linear_gemm(side(4, 32), side(32, 64), true), InternalError);
  EXPECT_THROW(linear_gemm(side(4, 16), side(16, 32), false), InternalError);
  EXPECT_THROW(linear_gemm(at::randn({4, 32}), side(32, 32), true), InternalError);
}

}  // namespace
}  // namespace gallop::kernel
