// Networks as users of LibTorch write them, and what the compiler makes of them.
#include <ATen/TensorOperators.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>
#include <gtest/gtest.h>

#include "unit/compile/stock_network.h"

namespace gallop::compile {
namespace {

using Tensors = StockNetwork::Tensors;

// In fp32 and under autocast.
class Patterns : public testing::TestWithParam<bool> {
 protected:
  static StockNetwork in_format(StockNetwork network) {
    network.bf16 = GetParam();
    return network;
  }
};

INSTANTIATE_TEST_SUITE_P(Formats, Patterns, testing::Bool(),
                         [](const auto& tested) { return tested.param ? "Bf16" : "Fp32"; });

const std::vector<std::string> kActivations = {"aten::gelu", "aten::gelu_backward",
                                               "aten::silu", "aten::silu_backward",
                                               "aten::relu", "aten::threshold_backward"};

using Activate = at::Tensor (*)(const at::Tensor&);

// Two linear layers with an activation between them, over [batch, tokens, width].
StockNetwork feed_forward(Activate activate, int64_t rows = 6, int64_t inner = 24) {
  return {.forward = [activate](const StockNetwork& self, const Tensors& batch) -> Tensors {
            const auto x = activate(at::linear(batch[0], self.weight(0), self.weight(1)));
            return {at::linear(x, self.weight(2), self.weight(3)).square().mean()};
          },
          .parameters = {random({inner, 10}, 1, 0.3), random({inner}, 2),
                         random({7, inner}, 3, 0.2), random({7}, 4)},
          .batches = {{random({rows, 5, 10}, 5)}, {random({rows, 5, 10}, 6)}}};
}

TEST_P(Patterns, ActivationsAndTheSumsForTheirBias) {
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

TEST_P(Patterns, TheBiasOfALargeProductIsAddedByTheActivation) {
  auto network = feed_forward([](const at::Tensor& x) { return at::gelu(x, "tanh"); }, 40, 512);
  expect_replaced(in_format(network),
                  {.wanted = {{"aten::addmm", 1}, {"gallop::activation", 1}, {"aten::mm", 4}},
                   .replaced = kActivations});
}

// x w + b with the sum apart, which may also be given out.
StockNetwork separate_bias(bool gives_out) {
  return {.forward = [gives_out](const StockNetwork& self, const Tensors& batch) -> Tensors {
            const auto sum = at::matmul(batch[0], self.weight(0)) + self.weight(1);
            const auto loss = (at::silu(sum) * self.weight(2)).sum();
            return gives_out ? Tensors{loss, sum} : Tensors{loss};
          },
          .parameters = {random({6, 20}, 1), random({20}, 2), random({20}, 3)},
          .batches = {{random({9, 6}, 4)}}};
}

TEST_P(Patterns, ABiasAddedApartBecomesPartOfTheActivation) {
  // Under autocast it is added in fp32, which is another format than the product's.
  const int sums = GetParam() ? 1 : 0;
  expect_replaced(in_format(separate_bias(false)),
                  {.wanted = {{"aten::add.Tensor", sums}, {"gallop::activation", 1}},
                   .replaced = kActivations});
}

TEST_P(Patterns, ABiasedSumThatIsGivenOutStays) {
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

TEST_P(Patterns, ActivationsOfImagesInEitherLayout) {
  for (const bool channels_last : {false, true}) {
    expect_replaced(in_format(silu_of_images(channels_last, false)),
                    {.wanted = {{"gallop::activation", 1}, {"gallop::activation_backward", 1}},
                     .replaced = kActivations});
  }
}

TEST_P(Patterns, ActivationsOfTensorsWithGapsStay) {
  expect_left_alone(in_format(silu_of_images(true, true)), {"gallop::"});
}

}  // namespace
}  // namespace gallop::compile
