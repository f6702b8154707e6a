#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>
#include <gtest/gtest.h>

#include "unit/compile/stock_network.h"

namespace gallop::compile {
namespace {

using Tensors = StockNetwork::Tensors;

// Under autocast in bf16. Returns copies of gradients.
StockNetwork in_bf16(StockNetwork network) {
  network.bf16 = true;
  network.keeps_gradients = true;
  return network;
}

// Without the kernel of small linear layers, which takes what is left to LibTorch's GEMMs.
void expect_merged(const StockNetwork& network, Replacement replacement) {
  replacement.passes_off.emplace_back("linear-layers");
  expect_replaced(network, replacement);
}

constexpr int64_t kBatch = 4, kTokens = 33, kWidth = 24, kHeads = 3;

at::Tensor by_heads(const at::Tensor& x) {
  return x.view({kBatch, kTokens, kHeads, kWidth / kHeads}).transpose(1, 2);
}

// A layer, then what is made of three over its result; each gets a bias where that is wanted, whose
// gradient must not be 0 but for rounding.
using OfThree = at::Tensor (*)(const at::Tensor& a, const at::Tensor& b, const at::Tensor& c);

StockNetwork three_layers(OfThree of_three, bool with_bias) {
  std::vector<at::Tensor> parameters = {random({kWidth, 10}, 1, 0.5)};
  for (uint64_t i = 0; i < 3; ++i) parameters.push_back(random({kWidth, kWidth}, 2 + i, 0.3));
  for (uint64_t i = 0; with_bias && i < 3; ++i) parameters.push_back(random({kWidth}, 5 + i));
  return {.forward = [=](const StockNetwork& self, const Tensors& batch) -> Tensors {
            const auto x = at::relu(at::linear(batch[0], self.weight(0)));
            const auto layer = [&](size_t i) {
              return with_bias ? at::linear(x, self.weight(i), self.weight(i + 3))
                               : at::linear(x, self.weight(i));
            };
            const auto a = layer(1), b = layer(2), c = layer(3);
            return {of_three(a, b, c).square().mean()};
          },
          .parameters = parameters,
          .batches = {{random({kBatch, kTokens, 10}, 4)}, {random({kBatch, kTokens, 10}, 5)}}};
}

at::Tensor attention(const at::Tensor& a, const at::Tensor& b, const at::Tensor& c) {
  return at::scaled_dot_product_attention(by_heads(a), by_heads(b), by_heads(c), {}, 0,
                                          /*is_causal=*/true)
      .transpose(1, 2)
      .reshape({kBatch, kTokens, kWidth});
}

// The same with a mask, as in transformers.
at::Tensor masked_attention(const at::Tensor& a, const at::Tensor& b, const at::Tensor& c) {
  const at::Tensor places = at::arange(kTokens);
  return at::scaled_dot_product_attention(by_heads(a), by_heads(b), by_heads(c),
                                          places.unsqueeze(1) >= places)
      .transpose(1, 2)
      .reshape({kBatch, kTokens, kWidth});
}

TEST(MergeMatmuls, QueriesKeysAndValuesArePackedForAttention) {
  for (const auto& [of_three, bf16] : std::vector<std::pair<OfThree, bool>>{
           {attention, false}, {attention, true}, {masked_attention, false}}) {
    StockNetwork network = in_bf16(three_layers(of_three, false));
    network.bf16 = bf16;
    // Two GEMMs of the first layer; three for the group of three.
    expect_merged(network,
                  {.wanted = {{"gallop::attention", 1},
                              {"gallop::attention_backward", 1},
                              {"aten::mm", 5},
                              {"aten::cat", 2}},
                   .replaced = {"aten::_scaled_dot_product_flash_attention_for_cpu",
                                "aten::_scaled_dot_product_flash_attention_for_cpu_backward"}});
  }
}

TEST(MergeMatmuls, LayersWithBiases) {
  expect_merged(
      in_bf16(three_layers([](const at::Tensor& a, const at::Tensor& b,
                              const at::Tensor& c) { return a.tanh() * b + c.sigmoid(); },
                           true)),
      {.wanted = {{"aten::mm", 4}, {"aten::addmm", 1}, {"aten::cat", 4}}, .replaced = {}});
}

// A gated layer of 40 and 56 outputs in parts of 8, with a residual connection.
StockNetwork gated(bool with_residual, bool read_early) {
  return {.forward = [with_residual, read_early](const StockNetwork& self,
                                                 const Tensors& batch) -> Tensors {
            const auto x = at::linear(batch[0], self.weight(0)).tanh();
            const auto gate = at::linear(x, self.weight(1));
            const auto opened = read_early ? at::silu(gate) : gate;
            const auto value = at::linear(x, self.weight(2));
            const auto product = (read_early ? opened : at::silu(opened)) * value;
            const auto y = at::linear(product, self.weight(3));
            return {(with_residual ? y + x : y).square().mean()};
          },
          .parameters = {random({kWidth, 10}, 1, 0.5), random({40, kWidth}, 2, 0.3),
                         random({40, kWidth}, 3, 0.3), random({kWidth, 40}, 4, 0.3)},
          .batches = {{random({kBatch, kTokens, 10}, 5)}, {random({kBatch, kTokens, 10}, 6)}}};
}

TEST(MergeMatmuls, GatedLayersWithAndWithoutAResidual) {
  for (const bool with_residual : {false, true}) {
    for (const bool read_early : {false, true}) {
      // First layer: 2, last: 3, both others: 3.
      expect_merged(in_bf16(gated(with_residual, read_early)),
                    {.wanted = {{"aten::mm", 8}, {"aten::cat", 3}}, .replaced = {}});
    }
  }
}

// Two layers over 132 rows of which the second's result is read in this way.
using Reads = at::Tensor (*)(const at::Tensor& y);
StockNetwork read_as(Reads reads, int64_t rows = 132) {
  return {.forward = [reads](const StockNetwork& self, const Tensors& batch) -> Tensors {
            const auto x = at::linear(batch[0], self.weight(0)).tanh();
            const auto a = at::linear(x, self.weight(1)), b = at::linear(x, self.weight(2));
            return {(a.square().mean() + reads(b).mean())};
          },
          .parameters = {random({kWidth, 10}, 1, 0.5), random({16, kWidth}, 2, 0.3),
                         random({20, kWidth}, 3, 0.3)},
          .batches = {{random({rows, 10}, 4)}, {random({rows, 10}, 5)}}};
}

TEST(MergeMatmuls, ReadersOfSlicesGetTheSameValues) {
  for (const Reads reads : {Reads([](const at::Tensor& y) { return y.t().tanh(); }),
                            Reads([](const at::Tensor& y) { return y.narrow(0, 3, 50).exp(); }),
                            Reads([](const at::Tensor& y) { return y.select(1, 5).sin(); }),
                            Reads([](const at::Tensor& y) {
                              return y.view({11, 12, 4, 5}).slice(3, 1, 4, 2).cos();
                            }),
                            Reads([](const at::Tensor& y) { return y.softmax(1).square(); })}) {
    expect_merged(in_bf16(read_as(reads)), {.wanted = {{"aten::mm", 5}}, .replaced = {}});
  }
}

TEST(MergeMatmuls, GemmsAcrossRowsAreNotMerged) {
  expect_merged(in_bf16(read_as([](const at::Tensor& y) { return y.view({-1}).tanh(); })),
                {.wanted = {{"aten::mm", 8}}, .replaced = {"aten::cat"}});
}

TEST(MergeMatmuls, SlowerGemmsAreNotMerged) {
  const Reads tanh = [](const at::Tensor& y) { return y.tanh(); };
  StockNetwork fp32 = in_bf16(read_as(tanh));
  fp32.bf16 = false;
  expect_merged(fp32, {.wanted = {{"aten::mm", 8}}, .replaced = {"aten::cat"}});
  expect_merged(in_bf16(read_as(tanh, 8)),
                {.wanted = {{"aten::mm", 8}}, .replaced = {"aten::cat"}});
}

}  // namespace
}  // namespace gallop::compile
