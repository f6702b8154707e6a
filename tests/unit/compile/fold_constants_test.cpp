#include <algorithm>
#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/where.h>
#include <gtest/gtest.h>

#include "unit/compile/fused_function.h"

namespace gallop::compile {
namespace {

using Tensors = std::vector<at::Tensor>;

int64_t constants_of(const Graph& graph) {
  return std::count_if(graph.buffers.begin(), graph.buffers.end(),
                       [](const Buffer& buffer) { return buffer.is_constant; });
}

int64_t calls_of(const Graph& graph, const std::string& op) {
  return std::count_if(graph.nodes.begin(), graph.nodes.end(),
                       [&](const Node& node) { return node.op.schema().name() == op; });
}

// Angles of sizes alone, as rotary embeddings have them.
at::Tensor angles(int64_t tokens) {
  return (at::arange(tokens).cumsum(0).unsqueeze(1) * at::arange(4).add(1)).cos();
}

TEST(FoldConstants, ComputesWhatDependsOnSizesAloneOnce) {
  const auto function = [](const Tensors& in) -> Tensors {
    return {in[0] * angles(in[0].size(0)) + at::ones_like(in[0]), angles(3)};
  };
  const at::Tensor x = at::rand({5, 4});
  const FusedFunction folded(function, {x}, "", names_of_rounding_passes());
  // What is returned is made by each call, since callers may change it.
  EXPECT_EQ(constants_of(folded.graph), 2);
  EXPECT_EQ(calls_of(folded.graph, "aten::cumsum"), 0);
  EXPECT_EQ(calls_of(folded.graph, "aten::cos"), 1);
  for (int call = 0; call < 2; ++call) {
    const Tensors results = folded.run({x}), expected = function({x});
    EXPECT_TRUE(results[0].equal(expected[0]));
    EXPECT_TRUE(results[1].equal(expected[1]));
    results[1].zero_();
  }
}

TEST(FoldConstants, NotRandomNumbersNorWhatIsChanged) {
  const auto function = [](const Tensors& in) -> Tensors {
    at::Tensor changed = at::arange(4).add(1.5);
    changed.mul_(in[0].sum());
    return {in[0] + changed, in[0] * at::rand({4}).add(1)};
  };
  const at::Tensor x = at::rand({4});
  const FusedFunction folded(function, {x}, "", names_of_rounding_passes());
  const Tensors once = folded.run({x}), twice = folded.run({x});
  EXPECT_TRUE(once[0].equal(function({x})[0]));
  EXPECT_TRUE(once[0].equal(twice[0]));
  EXPECT_FALSE(once[1].equal(twice[1]));
}

// Masks of tokens [T, T], true where a query sees a key.
at::Tensor causal(int64_t tokens) {
  const at::Tensor places = at::arange(tokens);
  return places.unsqueeze(1) >= places;
}
at::Tensor window(int64_t tokens) {
  const at::Tensor places = at::arange(tokens);
  return causal(tokens).logical_and(places.unsqueeze(1) - places < 3);
}
at::Tensor lowest(int64_t tokens) {
  return at::where(causal(tokens), 0.0, -3.4e38).to(at::kFloat).expand({2, 1, tokens, tokens});
}
at::Tensor everything(int64_t tokens) { return at::arange(tokens).ge(0).expand({tokens, tokens}); }

struct MaskCase {
  const char* name;
  at::Tensor (*mask)(int64_t tokens);
  bool is_replaced, is_causal;
};

class AttentionMasks : public testing::TestWithParam<MaskCase> {};

TEST_P(AttentionMasks, ConstantOnesBecomeCausal) {
  const MaskCase& c = GetParam();
  const auto function = [&](const Tensors& in) -> Tensors {
    const int64_t tokens = in[0].size(2);
    return {at::scaled_dot_product_attention(in[0], in[1], in[2], c.mask(tokens))};
  };
  const Tensors inputs = {at::rand({2, 3, 20, 8}), at::rand({2, 3, 20, 8}),
                          at::rand({2, 3, 20, 8})};
  const FusedFunction masked(function, inputs, "", {"attention"});
  const std::string op = "aten::_scaled_dot_product_flash_attention_for_cpu";
  const auto node = std::find_if(masked.graph.nodes.begin(), masked.graph.nodes.end(),
                                 [&](const Node& one) { return one.op.schema().name() == op; });
  ASSERT_NE(node, masked.graph.nodes.end());
  const Operand &causal = node->arguments[4], &mask = node->arguments[5];
  EXPECT_EQ(causal.constant.toBool(), c.is_causal);
  EXPECT_EQ(mask.kind == Operand::Kind::kConstant, c.is_replaced);
  EXPECT_TRUE(masked.run(inputs)[0].allclose(function(inputs)[0], 1e-5, 1e-6));
}

INSTANTIATE_TEST_SUITE_P(Masks, AttentionMasks,
                         testing::Values(MaskCase{"Causal", causal, true, true},
                                         MaskCase{"Lowest", lowest, true, true},
                                         MaskCase{"Everything", everything, true, false},
                                         MaskCase{"Window", window, false, false}),
                         [](const auto& tested) { return std::string(tested.param.name); });

}  // namespace
}  // namespace gallop::compile
