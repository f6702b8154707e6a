// Convolutions, pooling and batch norms as users of LibTorch write them, and the kernels that the
// compiler inserts.
#include <algorithm>

#include <ATen/TensorOperators.h>
#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/avg_pool2d.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/hardswish.h>
#include <ATen/ops/hardtanh.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/silu.h>
#include <gtest/gtest.h>

#include "gallop/kernel/isa.h"
#include "unit/compile/patterns.h"
#include "unit/compile/stock_network.h"

namespace gallop::compile {
namespace {

using Tensors = StockNetwork::Tensors;

class ImagePatterns : public Patterns {};

INSTANTIATE_TEST_SUITE_P(Formats, ImagePatterns, testing::Bool(), format_name);

const std::vector<std::string> kBatchNorms = {
    "aten::native_batch_norm", "aten::native_batch_norm_backward", "aten::threshold_backward",
    "aten::relu", "aten::relu_"};

at::Tensor images(at::IntArrayRef sizes, uint64_t seed, double scale = 1) {
  return random(sizes, seed, scale).contiguous(at::MemoryFormat::ChannelsLast);
}

// Batch norm number i with its weights and statistics.
at::Tensor norm(const StockNetwork& self, const at::Tensor& x, size_t i, bool training = true) {
  return at::batch_norm(x, self.weight(2 * i), self.weight(2 * i + 1), self.buffers[2 * i],
                        self.buffers[2 * i + 1], training, 0.1, 1e-5, true);
}

void add_norms(StockNetwork& network, size_t count, int64_t channels) {
  for (size_t i = 0; i < count; ++i) {
    network.parameters.push_back(random({channels}, 10 + i).abs() + 0.5);
    network.parameters.push_back(random({channels}, 20 + i));
    network.buffers.push_back(random({channels}, 30 + i));
    network.buffers.push_back(random({channels}, 40 + i).abs() + 0.5);
  }
}

at::Tensor conv(const at::Tensor& x, const at::Tensor& weight, int64_t stride = 1,
                const at::Tensor& bias = {}) {
  return at::conv2d(x, weight, bias, stride, weight.size(2) / 2);
}

// The start and two blocks of a residual network, as torchvision writes them: one keeps the sizes,
// one has a projection beside it.
StockNetwork residual_network() {
  StockNetwork network;
  add_norms(network, 6, 8);
  for (uint64_t i = 0; i < 6; ++i) {
    const int64_t window = i == 5 ? 1 : 3;
    network.parameters.push_back(images({8, i == 0 ? 3 : 8, window, window}, 50 + i, 0.3));
  }
  network.forward = [](const StockNetwork& self, const Tensors& batch) -> Tensors {
    const auto weight = [&](size_t i) { return self.weight(12 + i); };
    auto x = norm(self, conv(batch[0], weight(0)), 0).relu_();
    auto y = norm(self, conv(x, weight(1)), 1).relu_();
    y = norm(self, conv(y, weight(2)), 2);
    y += x;
    x = y.relu_();
    y = at::relu(norm(self, conv(x, weight(3), 2), 3));
    y = norm(self, conv(y, weight(4)), 4) + norm(self, conv(x, weight(5), 2), 5);
    return {at::relu(y).square().mean()};
  };
  network.batches = {{images({4, 3, 8, 8}, 60)}, {images({4, 3, 8, 8}, 61)}};
  return network;
}

TEST_P(ImagePatterns, BlocksOfResidualNetworks) {
  auto replaced = kBatchNorms;
  replaced.emplace_back("aten::add.Tensor");
  replaced.emplace_back("aten::add_.Tensor");
  expect_replaced(in_format(residual_network()), {.wanted = {{"gallop::batch_norm", 6},
                                                             {"gallop::batch_norm_backward", 6},
                                                             {"gallop::activation", 0}},
                                                  .replaced = replaced});
}

using Pool = std::function<at::Tensor(const at::Tensor&)>;

// A head on convolutions, as torchvision and timm write them: mean over the pixels, linear layer.
StockNetwork pooled_network(const Pool& pool, bool with_norm, at::MemoryFormat format) {
  StockNetwork network;
  add_norms(network, 1, 8);
  network.parameters.push_back(random({8, 3, 3, 3}, 50, 0.3).contiguous(format));
  network.parameters.push_back(random({5, 8}, 51));
  network.parameters.push_back(random({8, 8, 3, 3}, 52, 0.3).contiguous(format));
  network.forward = [=](const StockNetwork& self, const Tensors& batch) -> Tensors {
    auto x = at::relu(conv(batch[0], self.weight(2)));
    x = at::relu(with_norm ? norm(self, conv(x, self.weight(4)), 0) : conv(x, self.weight(4)));
    return {at::linear(pool(x), self.weight(3)).square().mean()};
  };
  for (const uint64_t seed : {60, 61}) {
    network.batches.push_back({random({4, 3, 9, 7}, seed).contiguous(format)});
  }
  return network;
}

TEST_P(ImagePatterns, GlobalAveragePoolingWithAGradientInChannelsLast) {
  const std::vector<Pool> pools = {[](const at::Tensor& x) {
                                     return x.mean({2, 3});
                                   },
                                   [](const at::Tensor& x) {
                                     return x.mean({-1, -2}, /*keepdim=*/true).flatten(1);
                                   },
                                   [](const at::Tensor& x) {
                                     return at::adaptive_avg_pool2d(x, {1, 1}).flatten(1);
                                   },
                                   [](const at::Tensor& x) {
                                     return at::avg_pool2d(x, {9, 7}).flatten(1);
                                   }};
  for (const Pool& pool : pools) {
    for (const bool with_norm : {false, true}) {
      expect_replaced(
          in_format(pooled_network(pool, with_norm, at::MemoryFormat::ChannelsLast)),
          {.wanted = {{"gallop::global_avg_pool", 1}, {"gallop::global_avg_pool_backward", 1}},
           .replaced = {"aten::mean.dim", "aten::avg_pool2d", "aten::avg_pool2d_backward"}});
    }
  }
}

TEST_P(ImagePatterns, OtherPoolingIsKept) {
  const auto of_images = [](const at::Tensor& x) { return x.mean({2, 3}); };
  const auto of_rows = [](const at::Tensor& x) {
    return x.mean({1, 2}).repeat({1, 2}).narrow(1, 0, 8);
  };
  const auto in_fp64 = [](const at::Tensor& x) {
    return x.mean({2, 3}, /*keepdim=*/false, at::kDouble).to(at::kFloat);
  };
  const std::vector<std::string> ours = {"gallop::global_avg_pool"};
  constexpr auto kChannelsLast = at::MemoryFormat::ChannelsLast;
  expect_left_alone(in_format(pooled_network(of_rows, false, kChannelsLast)), ours);
  expect_left_alone(in_format(pooled_network(in_fp64, false, kChannelsLast)), ours);
  expect_left_alone(in_format(pooled_network(of_images, false, at::MemoryFormat::Contiguous)),
                    ours);
}

// Two convolutions, the second with a stride, of images that need a gradient.
StockNetwork convolutions(int64_t channels, int64_t side, at::MemoryFormat format,
                          bool with_bias = false) {
  const auto laid_out = [format](const at::Tensor& x) { return x.contiguous(format); };
  StockNetwork network{
      .forward = [](const StockNetwork& self, const Tensors& batch) -> Tensors {
        const auto bias = [&](size_t i) {
          return i < self.parameters.size() ? self.weight(i) : at::Tensor();
        };
        const auto x = conv(batch[0] * self.weight(0), self.weight(1), 1, bias(3)).sin();
        const auto y = conv(x, self.weight(2), 2, bias(4));
        return {(y * y.detach()).sum() * 1e-4};
      },
      .parameters = {random({1, channels, 1, 1}, 1), laid_out(random({16, channels, 3, 3}, 2, 0.2)),
                     laid_out(random({32, 16, 3, 3}, 3, 0.2))},
      .batches = {{laid_out(random({3, channels, side, side}, 4))},
                  {laid_out(random({3, channels, side, side}, 5))}}};
  if (with_bias) {
    network.parameters.push_back(random({16}, 6));
    network.parameters.push_back(random({32}, 7));
  }
  return network;
}

TEST_P(ImagePatterns, ConvolutionsOfFewChannels) {
  const bool tiles = GetParam() && kernel::best_isa() >= kernel::Isa::kAmx;
  const bool pairs = GetParam() && kernel::best_isa() >= kernel::Isa::kAvx512Bf16;
  const int all = tiles ? 2 : 0;
  const int of_a_stride = pairs ? 1 : 0;
  const int of_x = std::max(all, of_a_stride);
  for (const bool with_bias : {false, true}) {
    expect_replaced(in_format(convolutions(16, 32, at::MemoryFormat::ChannelsLast, with_bias)),
                    {.wanted = {{"gallop::conv2d", all},
                                {"gallop::conv2d_dgrad", of_x},
                                {"gallop::conv2d_wgrad", pairs ? 2 : 0},
                                {"aten::convolution", 2 - all},
                                {"aten::convolution_backward", pairs ? 2 - of_x : 2},
                                {"aten::sum.dim_IntList", with_bias && pairs ? 3 : 1}},
                     .replaced = {}});
  }
}

TEST_P(ImagePatterns, GradientsOfDepthwiseConvolutions) {
  const bool bf16 = GetParam();
  for (const bool with_bias : {false, true}) {
    const StockNetwork network{
        .forward = [with_bias](const StockNetwork& self, const Tensors& batch) -> Tensors {
          const at::Tensor x = at::conv2d(batch[0], self.weight(0));
          const at::Tensor y =
              at::conv2d(x, self.weight(1), with_bias ? self.weight(2) : at::Tensor(),
                         /*stride=*/2, /*padding=*/2, /*dilation=*/1, /*groups=*/24);
          return {y.square().mean()};
        },
        .parameters = {random({24, 5, 1, 1}, 1), random({24, 1, 5, 5}, 2), random({24}, 3)},
        .batches = {{images({3, 5, 9, 8}, 4)}, {images({3, 5, 9, 8}, 5)}}};
    // LibTorch's convolution, and its gradient of x in fp32, stay.
    expect_replaced(in_format(network),
                    {.wanted = {{"gallop::depthwise_conv2d_wgrad", 1},
                                {"gallop::depthwise_conv2d_dgrad", bf16 ? 1 : 0},
                                {"aten::convolution", 2},
                                {"aten::convolution_backward", bf16 ? 1 : 2}},
                     .replaced = {}});
  }
}

TEST_P(ImagePatterns, UnsupportedConvolutionsAreKept) {
  const std::vector<std::string> ours = {"gallop::conv2d"};
  for (const auto& network : {convolutions(16, 32, at::MemoryFormat::Contiguous),
                              convolutions(10, 14, at::MemoryFormat::ChannelsLast)}) {
    expect_replaced(in_format(network), {.wanted = {{"aten::convolution", 2}}, .replaced = ours});
  }
}

// Batch norm of `x * weight`, and the following operators.
using Behind = Tensors (*)(const StockNetwork&, const at::Tensor& x);
StockNetwork one_norm(Behind behind, const at::Tensor& x) {
  StockNetwork network;
  add_norms(network, 1, x.size(1));
  network.parameters.push_back(random({1}, 9));
  network.forward = [behind](const StockNetwork& self, const Tensors& batch) -> Tensors {
    const auto y = batch[0].mul(self.weight(2).to(batch[0].scalar_type()));
    return behind(self, y);
  };
  network.batches = {{x}};
  return network;
}

TEST(ImagePatternsFp32, BatchNormOfRowsAndOfOneValueEach) {
  const Behind behind = [](const StockNetwork& self, const at::Tensor& x) -> Tensors {
    return {at::relu(norm(self, x, 0)).square().mean() + norm(self, x, 0).pow(3).mean()};
  };
  for (const auto& sizes : {std::vector<int64_t>{40, 5}, {50, 7, 1, 1}, {9, 1, 3, 2}}) {
    expect_replaced(one_norm(behind, random(sizes, 1)),
                    {.wanted = {{"gallop::batch_norm", 2}}, .replaced = kBatchNorms});
  }
}

TEST(ImagePatternsFp32, BatchNormWithAResidualButNoRelu) {
  const Behind behind = [](const StockNetwork& self, const at::Tensor& x) -> Tensors {
    return {(norm(self, x, 0) + x).pow(3).mean()};
  };
  expect_replaced(one_norm(behind, images({3, 5, 4, 4}, 1)),
                  {.wanted = {{"gallop::batch_norm", 1}}, .replaced = kBatchNorms});
}

TEST(ImagePatternsFp32, ABatchNormThatIsReturnedKeepsASeparateRelu) {
  const Behind behind = [](const StockNetwork& self, const at::Tensor& x) -> Tensors {
    const auto y = norm(self, x, 0);
    return {at::relu(y).pow(3).mean(), y};
  };
  expect_replaced(one_norm(behind, images({3, 5, 4, 4}, 1)),
                  {.wanted = {{"gallop::batch_norm", 1}, {"gallop::activation", 1}},
                   .replaced = {"aten::native_batch_norm"}});
}

TEST(ImagePatternsFp32, BatchNormWithAnActivation) {
  const std::vector<std::string> replaced = {"aten::silu",         "aten::hardswish",
                                             "aten::hardtanh",     "aten::clone",
                                             "gallop::activation", "aten::native_batch_norm"};
  const std::vector<Behind> all = {[](const StockNetwork& self, const at::Tensor& x) -> Tensors {
                                     return {at::silu(norm(self, x, 0)).pow(3).mean()};
                                   },
                                   [](const StockNetwork& self, const at::Tensor& x) -> Tensors {
                                     at::Tensor y = norm(self, x, 0);
                                     return {at::silu_(y).pow(3).mean()};
                                   },
                                   [](const StockNetwork& self, const at::Tensor& x) -> Tensors {
                                     at::Tensor y = norm(self, x, 0);
                                     return {at::hardswish_(y).pow(3).mean()};
                                   },
                                   [](const StockNetwork& self, const at::Tensor& x) -> Tensors {
                                     at::Tensor y = norm(self, x, 0);
                                     return {at::hardtanh_(y, 0, 6).pow(3).mean()};
                                   }};
  for (const Behind behind : all) {
    expect_replaced(one_norm(behind, images({3, 5, 4, 4}, 1)),
                    {.wanted = {{"gallop::batch_norm", 1}, {"gallop::batch_norm_backward", 1}},
                     .replaced = replaced});
  }
}

TEST(ImagePatternsFp32, AnActivationThatIsNoReluSixIsKept) {
  const Behind behind = [](const StockNetwork& self, const at::Tensor& x) -> Tensors {
    return {at::hardtanh(norm(self, x, 0), -1, 1).pow(3).mean()};
  };
  expect_replaced(one_norm(behind, images({3, 5, 4, 4}, 1)),
                  {.wanted = {{"gallop::batch_norm", 1}}, .replaced = {"aten::native_batch_norm"}});
}

TEST(ImagePatternsFp32, UnsupportedBatchNormsAreKept) {
  const Behind training = [](const StockNetwork& self, const at::Tensor& x) -> Tensors {
    return {norm(self, x, 0).pow(3).mean()};
  };
  const Behind evaluation = [](const StockNetwork& self, const at::Tensor& x) -> Tensors {
    return {norm(self, x, 0, false).pow(3).mean()};
  };
  const std::vector<std::string> ours = {"gallop::"};
  expect_left_alone(one_norm(training, random({3, 5, 4, 4}, 1)), ours);
  expect_left_alone(one_norm(training, random({3, 5, 4}, 1)), ours);
  expect_left_alone(one_norm(evaluation, images({3, 5, 4, 4}, 1)), ours);
}

}  // namespace
}  // namespace gallop::compile
