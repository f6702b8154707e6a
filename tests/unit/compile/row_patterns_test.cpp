// Linear layers, activations, layer norms, attention and losses as users of LibTorch write them,
// and the kernels that the compiler inserts.
#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/nll_loss.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>

#include "gallop/compile/passes/passes.h"
#include "gallop/compile/recorder.h"
#include "gallop/kernel/isa.h"
#include "unit/compile/patterns.h"
#include "unit/compile/stock_network.h"

namespace gallop::compile {
namespace {

using Tensors = StockNetwork::Tensors;

class RowPatterns : public Patterns {};

INSTANTIATE_TEST_SUITE_P(Formats, RowPatterns, testing::Bool(), format_name);

const std::vector<std::string> kActivations = {"aten::gelu", "aten::gelu_backward",
                                               "aten::silu", "aten::silu_backward",
                                               "aten::relu", "aten::threshold_backward"};

using Activate = at::Tensor (*)(const at::Tensor&);

// Two linear layers with an activation between them, over [batch, tokens, width].
StockNetwork feed_forward(Activate activate, int64_t rows = 60, int64_t inner = 24) {
  return {.forward = [activate](const StockNetwork& self, const Tensors& batch) -> Tensors {
            const auto x = activate(at::linear(batch[0], self.weight(0), self.weight(1)));
            return {at::linear(x, self.weight(2), self.weight(3)).square().mean()};
          },
          .parameters = {random({inner, 10}, 1, 0.3), random({inner}, 2),
                         random({7, inner}, 3, 0.2), random({7}, 4)},
          .batches = {{random({rows, 5, 10}, 5)}, {random({rows, 5, 10}, 6)}}};
}

TEST_P(RowPatterns, ActivationsAndTheSumsForTheirBias) {
  const std::vector<Activate> all = {[](const at::Tensor& x) { return at::gelu(x); },
                                     [](const at::Tensor& x) { return at::gelu(x, "tanh"); },
                                     [](const at::Tensor& x) { return at::silu(x); },
                                     [](const at::Tensor& x) { return at::relu(x); }};
  for (const Activate activate : all) {
    expect_replaced(in_format(feed_forward(activate)),
                    {.wanted = {{"gallop::activation", 1},
                                {"gallop::activation_backward", 1},
                                {"aten::sum.dim_IntList", 1}},
                     .replaced = kActivations});
  }
}

TEST_P(RowPatterns, TheBiasOfALargeGemmIsAddedByTheActivation) {
  auto network = feed_forward([](const at::Tensor& x) { return at::gelu(x, "tanh"); }, 60, 512);
  expect_replaced(in_format(network),
                  {.wanted = {{"aten::addmm", 1}, {"gallop::activation", 1}, {"aten::mm", 4}},
                   .replaced = kActivations});
}

// How often the kernel of small linear layers is called in place of `count` layers.
int small_layers(bool bf16, int count) {
  const auto least = bf16 ? kernel::Isa::kAvx512Bf16 : kernel::Isa::kAvx512;
  return kernel::best_isa() >= least ? count : 0;
}

TEST_P(RowPatterns, SmallLinearLayersWithTheirReluAndGradients) {
  const int layers = small_layers(GetParam(), 2);
  const auto relu = [](const at::Tensor& x) { return at::relu(x); };
  expect_replaced(in_format(feed_forward(relu, 6)),
                  {.wanted = {{"gallop::linear", layers},
                              {"gallop::linear_backward", layers},
                              {"gallop::activation", layers > 0 ? 0 : 1},
                              {"aten::addmm", 2 - layers},
                              {"aten::sum.dim_IntList", layers > 0 ? 0 : 1}},
                   .replaced = kActivations});
  const auto gelu = [](const at::Tensor& x) { return at::gelu(x); };
  expect_replaced(in_format(feed_forward(gelu, 6)), {.wanted = {{"gallop::linear", layers},
                                                                {"gallop::linear_backward", layers},
                                                                {"gallop::activation", 1},
                                                                {"gallop::activation_backward", 1}},
                                                     .replaced = kActivations});
}

// Layers of one tensor, one without a bias and one whose weight is frozen; what ReLU is applied to
// and its result have other readers.
StockNetwork branching_layers(bool gives_out) {
  return {.forward = [gives_out](const StockNetwork& self, const Tensors& batch) -> Tensors {
            const auto x = at::relu(at::linear(batch[0], self.weight(0), self.weight(1)));
            const auto a = at::linear(x, self.weight(2));
            const auto b = at::linear(x, self.weight(3).detach(), self.weight(4));
            const auto c = at::relu(a) * b + a;
            const auto loss = c.square().mean();
            return gives_out ? Tensors{loss, x, a} : Tensors{loss};
          },
          .parameters = {random({40, 10}, 1, 0.3), random({40}, 2), random({7, 40}, 3, 0.2),
                         random({7, 40}, 4, 0.2), random({7}, 5)},
          .batches = {{random({120, 10}, 6)}, {random({120, 10}, 7)}}};
}

TEST_P(RowPatterns, SmallLinearLayersOfOneTensor) {
  for (const bool gives_out : {false, true}) {
    expect_replaced(in_format(branching_layers(gives_out)),
                    {.wanted = {{"gallop::linear", small_layers(GetParam(), 3)},
                                {"gallop::linear_backward", small_layers(GetParam(), 2)}},
                     .replaced = {}});
  }
}

TEST_P(RowPatterns, LargeLinearLayersAreKept) {
  const auto relu = [](const at::Tensor& x) { return at::relu(x); };
  expect_replaced(in_format(feed_forward(relu)),
                  {.wanted = {{"gallop::linear", 0}, {"aten::addmm", 2}}, .replaced = {}});
}

TEST_P(RowPatterns, WeightGradientsOfLargeLayers) {
  const auto network = [](int64_t rows, int64_t width) -> StockNetwork {
    return {.forward = [](const StockNetwork& self, const Tensors& batch) -> Tensors {
              const auto hidden = at::linear(batch[0], self.weight(0)).sin();
              return {at::linear(hidden, self.weight(1)).square().mean()};
            },
            .parameters = {random({64, 32}, 1, 0.3), random({width, 64}, 2, 0.3)},
            .batches = {{random({rows, 5, 32}, 3)}, {random({rows, 5, 32}, 4)}}};
  };
  const bool pairs = GetParam() && kernel::best_isa() >= kernel::Isa::kAvx512Bf16;
  const bool tiles = GetParam() && kernel::best_isa() >= kernel::Isa::kAmx;
  const int weights = pairs ? 2 : 0, products = tiles ? 1 : 0;
  expect_replaced(in_format(network(60, 48)), {.wanted = {{"gallop::linear_wgrad", weights},
                                                          {"gallop::linear_gemm", products},
                                                          {"aten::mm", 5 - weights - products}},
                                               .replaced = {}});
  // A width that is not a multiple of 16, or few rows.
  expect_replaced(in_format(network(60, 50)),
                  {.wanted = {{"gallop::linear_wgrad", pairs ? 1 : 0}}, .replaced = {}});
  expect_replaced(in_format(network(20, 48)),
                  {.wanted = {{"gallop::linear_wgrad", 0}}, .replaced = {}});
}

// x w + b with a separate addition, whose result may also be returned.
StockNetwork separate_bias(bool gives_out) {
  return {.forward = [gives_out](const StockNetwork& self, const Tensors& batch) -> Tensors {
            const auto sum = at::matmul(batch[0], self.weight(0)) + self.weight(1);
            const auto loss = (at::silu(sum) * self.weight(2)).sum();
            return gives_out ? Tensors{loss, sum} : Tensors{loss};
          },
          .parameters = {random({6, 20}, 1), random({20}, 2), random({20}, 3)},
          .batches = {{random({9, 6}, 4)}}};
}

TEST_P(RowPatterns, ABiasAddedApartBecomesPartOfTheActivation) {
  // Under autocast it is added in fp32, which is another format than the product's.
  const int sums = GetParam() ? 1 : 0;
  expect_replaced(in_format(separate_bias(false)),
                  {.wanted = {{"aten::add.Tensor", sums}, {"gallop::activation", 1}},
                   .replaced = kActivations});
}

TEST_P(RowPatterns, ABiasedSumThatIsReturnedIsKept) {
  expect_replaced(in_format(separate_bias(true)),
                  {.wanted = {{"aten::add.Tensor", 1}, {"gallop::activation_backward", 1}},
                   .replaced = kActivations});
}

// SiLU of images, of all of them or of columns.
StockNetwork silu_of_images(bool channels_last, bool in_part) {
  const auto format = channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
  return {.forward = [in_part](const StockNetwork& self, const Tensors& batch) -> Tensors {
            const auto x = batch[0] * self.weight(0);
            const auto y = at::silu(in_part ? x.narrow(3, 0, 2) : x);
            return {(y * y.detach()).sum()};
          },
          .parameters = {random({1, 5, 1, 1}, 1)},
          .batches = {{random({3, 5, 4, 6}, 2).contiguous(format)}}};
}

TEST_P(RowPatterns, ActivationsOfImagesInEitherLayout) {
  for (const bool channels_last : {false, true}) {
    expect_replaced(in_format(silu_of_images(channels_last, false)),
                    {.wanted = {{"gallop::activation", 1}, {"gallop::activation_backward", 1}},
                     .replaced = kActivations});
  }
}

TEST_P(RowPatterns, ActivationsOfStridedTensorsAreKept) {
  expect_left_alone(in_format(silu_of_images(true, true)), {"gallop::"});
}
const std::vector<std::string> kLayerNorms = {"aten::native_layer_norm",
                                              "aten::native_layer_norm_backward"};

// The residual stream of a transformer: x, then x + branch(norm(x)), twice, and a last norm.
StockNetwork stream(bool with_bias) {
  return {.forward = [with_bias](const StockNetwork& self, const Tensors& batch) -> Tensors {
            const auto norm_of = [&](const at::Tensor& x, size_t i) {
              return at::layer_norm(x, 12, self.weight(i),
                                    with_bias ? self.weight(i + 3) : at::Tensor());
            };
            at::Tensor x = batch[0] * self.weight(8);
            x = x + at::linear(norm_of(x, 0), self.weight(6));
            x = at::linear(norm_of(x, 1), self.weight(7)) + x;
            return {norm_of(x, 2).pow(3).mean()};
          },
          .parameters = {random({12}, 1), random({12}, 2), random({12}, 3), random({12}, 4),
                         random({12}, 5), random({12}, 6), random({12, 12}, 7, 0.3),
                         random({12, 12}, 8, 0.3), random({12}, 9)},
          .batches = {{random({3, 5, 12}, 10)}, {random({3, 5, 12}, 11)}}};
}

TEST_P(RowPatterns, LayerNormsWithTheResidualSums) {
  auto replaced = kLayerNorms;
  // The gradient of the stream's start is taken by a product with no layer before it.
  replaced.emplace_back("aten::add.Tensor");
  for (const bool with_bias : {false, true}) {
    expect_replaced(in_format(stream(with_bias)),
                    {.wanted = {{"gallop::layer_norm", 3}, {"gallop::layer_norm_backward", 3}},
                     .replaced = replaced});
  }
}

// Under autocast the cast to bf16 is one of the flattened images.
TEST_P(RowPatterns, ALayerNormThatIsFlattened) {
  const StockNetwork network{
      .forward = [](const StockNetwork& self, const Tensors& batch) -> Tensors {
        const at::Tensor y =
            at::layer_norm(batch[0] * self.weight(0), 16, self.weight(1), self.weight(2));
        return {at::linear(y.flatten(1), self.weight(3)).square().mean()};
      },
      .parameters = {random({1}, 1), random({16}, 2), random({16}, 3), random({7, 16}, 4)},
      .batches = {{random({9, 1, 1, 16}, 5)}, {random({9, 1, 1, 16}, 6)}}};
  expect_replaced(in_format(network),
                  {.wanted = {{"gallop::layer_norm", 1}, {"gallop::layer_norm_backward", 1}},
                   .replaced = kLayerNorms});
}

// One layer norm over the last dimensions that the weight has.
StockNetwork one_layer_norm(at::IntArrayRef sizes, at::IntArrayRef normed, bool transposed,
                            bool gives_out) {
  return {.forward = [normed = normed.vec(), transposed, gives_out](
                         const StockNetwork& self, const Tensors& batch) -> Tensors {
            const auto scaled = batch[0] * self.weight(0);
            const auto x = scaled + scaled.pow(2);
            const auto y = at::layer_norm(transposed ? x.transpose(0, 1) : x, normed,
                                          self.weight(1), self.weight(2));
            const auto loss = (y.to(at::kBFloat16) * y.detach().to(at::kBFloat16)).sum();
            return gives_out ? Tensors{loss, x, y} : Tensors{loss};
          },
          .parameters = {random({1}, 1), random(normed, 2), random(normed, 3)},
          .batches = {{random(sizes, 4)}}};
}

TEST(RowPatternsFp32, ALayerNormAndItsSumThatAreReturned) {
  expect_replaced(one_layer_norm({6, 5, 16}, {16}, false, true),
                  {.wanted = {{"gallop::layer_norm", 1}, {"gallop::layer_norm_backward", 1}},
                   .replaced = kLayerNorms});
}

TEST(RowPatternsFp32, UnsupportedLayerNormsAreKept) {
  expect_left_alone(one_layer_norm({6, 5, 16}, {5, 16}, false, false), {"gallop::"});
  expect_left_alone(one_layer_norm({6, 5, 16}, {16}, true, false), {"gallop::"});
}

const std::vector<std::string> kAttention = {
    "aten::_scaled_dot_product_flash_attention_for_cpu",
    "aten::_scaled_dot_product_flash_attention_for_cpu_backward", "aten::cat", "aten::stack"};

// How a model takes queries, keys and values [B, H, T, D] out of one product [B, T, 3 * H * D].
using TakeApart = Tensors (*)(const at::Tensor& qkv, int64_t heads);

at::Tensor by_heads(const at::Tensor& x, int64_t heads) {
  return x.view({x.size(0), x.size(1), heads, -1}).transpose(1, 2);
}

Tensors as_nanogpt(const at::Tensor& qkv, int64_t heads) {
  const auto parts = qkv.split(qkv.size(2) / 3, 2);
  return {by_heads(parts[0], heads), by_heads(parts[1], heads), by_heads(parts[2], heads)};
}

Tensors as_timm(const at::Tensor& qkv, int64_t heads) {
  const int64_t batch = qkv.size(0), tokens = qkv.size(1);
  const auto parts = qkv.reshape({batch, tokens, 3, heads, -1}).permute({2, 0, 3, 1, 4}).unbind(0);
  return {parts[0], parts[1], parts[2]};
}

Tensors in_another_order(const at::Tensor& qkv, int64_t heads) {
  const auto parts = as_nanogpt(qkv, heads);
  return {parts[1], parts[0], parts[2]};
}

// Attention between two products, of 2 sequences of 9 tokens with 3 heads of 8.
StockNetwork one_attention(TakeApart take_apart, bool causal, double dropout = 0) {
  return {.forward = [take_apart, causal, dropout](const StockNetwork& self,
                                                   const Tensors& batch) -> Tensors {
            const auto parts = take_apart(at::linear(batch[0], self.weight(0), self.weight(1)), 3);
            const auto y =
                at::scaled_dot_product_attention(parts[0], parts[1], parts[2], {}, dropout, causal)
                    .transpose(1, 2)
                    .reshape({2, 9, 24});
            return {at::linear(y, self.weight(2)).square().mean()};
          },
          .parameters = {random({72, 10}, 1, 0.5), random({72}, 2), random({5, 24}, 3)},
          .batches = {{random({2, 9, 10}, 4)}, {random({2, 9, 10}, 5)}}};
}

TEST_P(RowPatterns, AttentionOverPackedHeads) {
  for (const TakeApart take_apart : {as_nanogpt, as_timm}) {
    for (const bool causal : {false, true}) {
      expect_replaced(in_format(one_attention(take_apart, causal)),
                      {.wanted = {{"gallop::attention", 1}, {"gallop::attention_backward", 1}},
                       .replaced = kAttention});
    }
  }
}

TEST_P(RowPatterns, UnsupportedAttentionIsKept) {
  expect_left_alone(in_format(one_attention(as_nanogpt, true, 0.3)), {"gallop::attention"});
  expect_left_alone(in_format(one_attention(in_another_order, true)), {"gallop::attention"});
}

// Views that a replacement adds may move those of the graph, whenever its list is full.
TEST(AttentionPass, DoesNotDependOnTheCapacityOfTheGraph) {
  const Function function = [](const Tensors& in) -> Tensors {
    const auto [qkv, dy] = std::pair(as_timm(in[0], 3), by_heads(in[1], 3));
    const auto [y, log_sums] = at::_scaled_dot_product_flash_attention_for_cpu(
        qkv[0], qkv[1], qkv[2], 0, /*is_causal=*/false);
    const auto [dq, dk, dv] = at::_scaled_dot_product_flash_attention_for_cpu_backward(
        dy, qkv[0], qkv[1], qkv[2], y, log_sums, 0, /*is_causal=*/false);
    return {
        y, at::stack({dq, dk, dv}, 0).permute({1, 3, 0, 2, 4}).clone(at::MemoryFormat::Contiguous)};
  };
  for (size_t more = 0; more < 12; ++more) {
    Recording recording = record(function, {random({2, 9, 72}, 1), random({2, 9, 24}, 2)});
    Graph& graph = recording.graph;
    std::vector<View> views;
    views.reserve(graph.views.size() + more);
    views.assign(graph.views.begin(), graph.views.end());
    graph.views = std::move(views);
    passes::attention(graph);
    const auto replaced = std::count_if(
        graph.nodes.begin(), graph.nodes.end(),
        [](const Node& node) { return name_of(node.op) == "gallop::attention_backward"; });
    EXPECT_EQ(replaced, 1) << more;
  }
}

const std::vector<std::string> kCrossEntropy = {
    "aten::_log_softmax", "aten::_log_softmax_backward_data", "aten::nll_loss_forward",
    "aten::nll_loss_backward", "aten::masked_fill.Scalar"};

// A linear layer with softmax cross-entropy over 6 classes; two targets do not count.
StockNetwork classifier(int64_t reduction, double smoothing, const at::Tensor& class_weights = {}) {
  const auto target = [](uint64_t seed) {
    auto classes = random({20}, seed, 10).abs().to(at::kLong).remainder(6);
    classes.narrow(0, 3, 2).fill_(-100);
    return classes;
  };
  return {.forward = [=](const StockNetwork& self, const Tensors& batch) -> Tensors {
            const auto logits = at::linear(batch[0], self.weight(0), self.weight(1));
            const auto weights =
                class_weights.defined() ? class_weights.to(batch[0].scalar_type()) : at::Tensor();
            return {at::cross_entropy_loss(logits, batch[1], weights, reduction, -100, smoothing)};
          },
          .parameters = {random({6, 7}, 1), random({6}, 2)},
          .batches = {{random({20, 7}, 3), target(4)}, {random({20, 7}, 5), target(6)}}};
}

TEST_P(RowPatterns, CrossEntropyAsMeanAndSumWithAndWithoutSmoothing) {
  for (const int64_t reduction : {at::Reduction::Mean, at::Reduction::Sum}) {
    for (const double smoothing : {0.0, 0.1}) {
      expect_replaced(
          in_format(classifier(reduction, smoothing)),
          {.wanted = {{"gallop::cross_entropy", 1}, {"gallop::cross_entropy_backward", 1}},
           .replaced = kCrossEntropy});
    }
  }
}

TEST_P(RowPatterns, UnsupportedCrossEntropyIsKept) {
  expect_left_alone(in_format(classifier(at::Reduction::Mean, 0, random({6}, 9).abs())),
                    {"gallop::"});
  auto gives_out = classifier(at::Reduction::Mean, 0);
  gives_out.forward = [](const StockNetwork& self, const Tensors& batch) -> Tensors {
    const auto logs = at::log_softmax(at::linear(batch[0], self.weight(0), self.weight(1)), 1);
    return {at::nll_loss(logs, batch[1]), logs};
  };
  expect_left_alone(in_format(gives_out), {"gallop::"});
}

}  // namespace
}  // namespace gallop::compile
