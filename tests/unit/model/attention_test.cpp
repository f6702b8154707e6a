#include "gallop/model/functional/attention.h"

#include <cmath>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>

namespace gallop::model::functional {
namespace {

constexpr int64_t kBatch = 2, kTokens = 40, kHeads = 3, kWidth = 16;

at::Tensor normal(at::IntArrayRef sizes, uint64_t seed) {
  return at::randn(sizes, at::detail::createCPUGenerator(seed), at::kFloat);
}

at::Tensor by_library(const at::Tensor& qkv_BT3HD, bool causal) {
  const auto parts = qkv_BT3HD.permute({2, 0, 3, 1, 4}).unbind(0);
  return at::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, 0, causal)
      .transpose(1, 2);
}

class FunctionalAttention : public testing::TestWithParam<bool> {
 protected:
  kernel::AttentionOptions options() const {
    return {.causal = GetParam(), .scale = 1 / std::sqrt(static_cast<double>(kWidth))};
  }
  at::Tensor qkv = normal({kBatch, kTokens, 3, kHeads, kWidth}, 1);
  at::Tensor dy = normal({kBatch, kTokens, kHeads, kWidth}, 2);
};

TEST_P(FunctionalAttention, HasTheValueAndTheGradientOfTheLibrarys) {
  const at::Tensor ours = qkv.clone().requires_grad_(true);
  const at::Tensor theirs = qkv.clone().requires_grad_(true);
  const at::Tensor y = functional::attention(ours, options()),
                   wanted = by_library(theirs, GetParam());
  EXPECT_TRUE(at::allclose(y, wanted, 1e-5, 1e-6));
  (y * dy).sum().backward();
  (wanted * dy).sum().backward();
  EXPECT_TRUE(at::allclose(ours.grad(), theirs.grad(), 1e-5, 1e-6));
}

TEST_P(FunctionalAttention, TakesGradientsThatAreNotContiguous) {
  const at::Tensor ours = qkv.clone().requires_grad_(true);
  const at::Tensor theirs = qkv.clone().requires_grad_(true);
  const at::Tensor transposed = dy.transpose(1, 2).contiguous().transpose(1, 2);
  functional::attention(ours, options()).backward(transposed);
  by_library(theirs, GetParam()).backward(transposed);
  EXPECT_TRUE(at::allclose(ours.grad(), theirs.grad(), 1e-5, 1e-6));
}

TEST_P(FunctionalAttention, KeepsNothingWithoutGradients) {
  const at::NoGradGuard no_grad;
  const at::Tensor y = functional::attention(qkv.requires_grad_(true), options());
  EXPECT_FALSE(y.requires_grad());
  EXPECT_TRUE(at::allclose(y, by_library(qkv, GetParam()), 1e-5, 1e-6));
}

// Against the library's with the mask of block-diagonal attention.
TEST_P(FunctionalAttention, KeepsDocumentsApart) {
  const at::Tensor ids = at::cat({at::arange(7), at::arange(1), at::arange(kTokens - 8)});
  kernel::AttentionOptions packed = options();
  packed.position_ids_BT = at::stack({ids, at::arange(kTokens)});
  const at::Tensor begins = at::arange(kTokens) - packed.position_ids_BT;
  at::Tensor visible = begins.unsqueeze(2).eq(begins.unsqueeze(1)).unsqueeze(1);
  if (GetParam()) visible = visible.logical_and(at::ones({kTokens, kTokens}, at::kBool).tril());
  const at::Tensor ours = qkv.clone().requires_grad_(true);
  const at::Tensor theirs = qkv.clone().requires_grad_(true);
  const auto parts = theirs.permute({2, 0, 3, 1, 4}).unbind(0);
  const at::Tensor y = functional::attention(ours, packed);
  const at::Tensor wanted =
      at::scaled_dot_product_attention(parts[0], parts[1], parts[2], visible).transpose(1, 2);
  EXPECT_TRUE(at::allclose(y, wanted, 1e-5, 1e-6));
  (y * dy).sum().backward();
  (wanted * dy).sum().backward();
  EXPECT_TRUE(at::allclose(ours.grad(), theirs.grad(), 1e-5, 1e-6));
}

INSTANTIATE_TEST_SUITE_P(Forms, FunctionalAttention, testing::Bool(),
                         [](const auto& given) { return given.param ? "Causal" : "Full"; });

}  // namespace
}  // namespace gallop::model::functional
