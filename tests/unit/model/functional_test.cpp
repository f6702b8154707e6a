// The kernels' autograd functions against LibTorch's operators.
#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/function.h>

#include "gallop/base/error.h"
#include "gallop/kernel/isa.h"
#include "gallop/model/functional/activation.h"
#include "gallop/model/functional/attention_dropout.h"
#include "gallop/model/functional/conv2d.h"
#include "gallop/model/functional/dropout.h"
#include "gallop/model/functional/embedding.h"
#include "gallop/model/functional/group_norm.h"
#include "gallop/model/functional/layer_norm.h"
#include "gallop/model/functional/linear.h"
#include "gallop/model/functional/swiglu.h"
#include "gallop/model/layers.h"
#include "unit/model/cpu_autocast.h"

namespace gallop::model::functional {
namespace {

using kernel::Activation;

at::Tensor leaf(at::IntArrayRef sizes, at::ScalarType format = at::kFloat, bool wanted = true) {
  return at::randn(sizes).to(format).requires_grad_(wanted);
}

at::Tensor fp64(const at::Tensor& tensor) {
  return tensor.detach().to(at::kDouble).requires_grad_();
}

void expect_close(const at::Tensor& found, const at::Tensor& truth, double bound = 1e-5) {
  ASSERT_TRUE(found.defined());
  const auto difference = (found.to(at::kDouble) - truth).norm().item<double>();
  EXPECT_LE(difference, bound * truth.norm().item<double>());
}

TEST(ActivationFunction, HasTheLibrarysValuesAndGradients) {
  for (const auto kind :
       {Activation::kGelu, Activation::kGeluTanh, Activation::kSilu, Activation::kRelu}) {
    for (const bool with_bias : {false, true}) {
      const auto x = leaf({3, 5, 18}), bias = with_bias ? leaf({18}) : at::Tensor();
      // fp64 uses LibTorch's operators.
      const auto true_x = fp64(x), true_bias = with_bias ? fp64(bias) : at::Tensor();
      const auto y = activation(kind, x, bias), true_y = activation(kind, true_x, true_bias);
      expect_close(y, true_y);
      (y * y).sum().backward();
      (true_y * true_y).sum().backward();
      expect_close(x.grad(), true_x.grad());
      if (with_bias) expect_close(bias.grad(), true_bias.grad());
    }
  }
}

TEST(ActivationFunction, KeepsChannelsLast) {
  const auto leaf_x =
      at::randn({2, 6, 3, 4}).contiguous(at::MemoryFormat::ChannelsLast).requires_grad_();
  const auto true_x = fp64(leaf_x);
  const auto y = activation(Activation::kGelu, leaf_x);
  EXPECT_TRUE(y.is_contiguous(at::MemoryFormat::ChannelsLast));
  EXPECT_NE(y.grad_fn()->name().find("Permute"), std::string::npos) << "not by the kernel";
  const auto true_y = activation(Activation::kGelu, true_x);
  expect_close(y, true_y);
  (y * y).sum().backward();
  (true_y * true_y).sum().backward();
  expect_close(leaf_x.grad(), true_x.grad());
}

void expect_gradients_of_linear(std::optional<Activation> kind, double bound) {
  const auto x = leaf({64, 40}), weight = leaf({48, 40}), bias = leaf({48});
  const auto true_x = fp64(x), true_weight = fp64(weight), true_bias = fp64(bias);
  const auto y = linear(x, weight, bias, kind);
  const auto true_y = linear(true_x, true_weight, true_bias, kind);
  expect_close(y, true_y, bound);
  const auto dy = at::randn({64, 48});
  y.backward(dy.to(y.scalar_type()));
  true_y.backward(dy.to(at::kDouble));
  expect_close(x.grad(), true_x.grad(), bound);
  expect_close(weight.grad(), true_weight.grad(), bound);
  expect_close(bias.grad(), true_bias.grad(), bound);
}

TEST(LinearFunction, HasTheLibrarysValuesAndGradients) {
  for (const auto kind : {std::optional<Activation>(), std::optional(Activation::kRelu),
                          std::optional(Activation::kGelu)}) {
    expect_gradients_of_linear(kind, 1e-5);
  }
}

TEST(LinearFunction, HasThemInBf16UnderAutocast) {
  const CpuAutocast autocast(at::kBFloat16);
  const auto weight = leaf({48, 40});
  EXPECT_EQ(linear(leaf({64, 40}), weight, at::Tensor()).scalar_type(), at::kBFloat16);
  for (const auto kind : {std::optional<Activation>(), std::optional(Activation::kSilu)}) {
    expect_gradients_of_linear(kind, 2e-2);
  }
}

// There is no gallop kernel for fp16.
TEST(LinearFunction, HasThemInFp16UnderAutocast) {
  const CpuAutocast autocast(at::kHalf);
  const auto x = leaf({4, 40}), weight = leaf({48, 40});
  const auto y = linear(x, weight, at::Tensor(), Activation::kRelu);
  EXPECT_EQ(y.scalar_type(), at::kHalf);
  // A gradient beyond what fp16 can hold.
  y.backward(at::full_like(y, 60000));
  EXPECT_FALSE(at::isfinite(weight.grad()).all().item<bool>());
}

TEST(LinearFunction, TakesWhatItsKernelDoesNot) {
  const auto base = leaf({40, 6}), weight = leaf({7, 40});
  EXPECT_EQ(linear(base.t(), weight, at::Tensor(), Activation::kRelu).sizes(),
            at::IntArrayRef({6, 7}));
  EXPECT_EQ(linear(at::empty({0, 40}), weight, at::Tensor()).numel(), 0);
  const auto large = leaf({4096, 40});
  linear(large, weight, at::Tensor(), Activation::kRelu).sum().backward();
  EXPECT_EQ(weight.grad().sizes(), weight.sizes());
  const auto fixed = leaf({7, 40}, at::kFloat, false);
  EXPECT_FALSE(linear(leaf({6, 40}, at::kFloat, false), fixed, at::Tensor()).requires_grad());
}

TEST(LinearFunction, HasNoSecondDerivative) {
  if (kernel::best_isa() < kernel::Isa::kAvx512) GTEST_SKIP() << "LibTorch's operators are used";
  const auto x = leaf({4, 6}), weight = leaf({5, 6});
  const auto y = linear(x, weight, at::Tensor()).sum();
  EXPECT_THROW(torch::autograd::grad({y}, {x}, {}, std::optional(true), /*create_graph=*/true),
               UsageError);
}

TEST(Conv2dFunction, HasItsGradientsInBf16UnderAutocast) {
  for (const bool wants_x : {false, true}) {
    const auto x = leaf({3, 8, 6, 6}, at::kFloat, wants_x), weight = leaf({16, 8, 3, 3});
    const auto true_x = fp64(x), true_weight = fp64(weight);
    at::Tensor y;
    {
      const CpuAutocast autocast(at::kBFloat16);
      y = functional::conv2d(x, weight, at::Tensor(), 1, 1);
    }
    EXPECT_EQ(y.scalar_type(), at::kBFloat16);
    const auto true_y = functional::conv2d(true_x, true_weight, at::Tensor(), 1, 1);
    expect_close(y, true_y, 1e-2);
    // A gradient that is not channels_last.
    const auto dy = at::randn({3, 16, 6, 6});
    y.backward(dy.to(at::kBFloat16));
    true_y.backward(dy.to(at::kDouble));
    EXPECT_EQ(weight.grad().scalar_type(), at::kFloat);
    expect_close(weight.grad(), true_weight.grad(), 1e-2);
    EXPECT_EQ(x.grad().defined(), wants_x);
    if (wants_x) expect_close(x.grad(), true_x.grad(), 1e-2);
  }
}

TEST(Conv2dFunction, TakesWhatItsKernelDoesNot) {
  const CpuAutocast autocast(at::kBFloat16);
  const auto x = leaf({2, 8, 5, 5}), weight = leaf({10, 8, 3, 3}), bias = leaf({10});
  const auto y = functional::conv2d(x, weight, bias, 2, 1);
  EXPECT_EQ(y.sizes(), at::IntArrayRef({2, 10, 3, 3}));
  y.sum().backward();
  EXPECT_TRUE(weight.grad().defined() && bias.grad().defined() && x.grad().defined());
}

TEST(Conv2dFunction, TakesFewChannelsInStridesByThePixelsThatItSees) {
  for (const int64_t channels : {4, 8, 15, 16, 24}) {
    const auto weight = leaf({10, channels, 1, 1}), bias = leaf({10});
    const auto x = at::randn({3, channels, 7, 6})
                       .contiguous(at::MemoryFormat::ChannelsLast)
                       .set_requires_grad(true);
    const auto true_x = fp64(x), true_weight = fp64(weight), true_bias = fp64(bias);
    const auto y = functional::conv2d(x, weight, bias, 2, 0);
    const auto true_y = at::conv2d(true_x, true_weight, true_bias, 2);
    expect_close(y, true_y, 1e-5);
    EXPECT_TRUE(y.is_contiguous(at::MemoryFormat::ChannelsLast));
    y.square().sum().backward();
    true_y.square().sum().backward();
    expect_close(x.grad(), true_x.grad(), 1e-5);
    expect_close(weight.grad(), true_weight.grad(), 1e-5);
    expect_close(bias.grad(), true_bias.grad(), 1e-5);
    const std::string before = y.grad_fn()->next_edge(0).function->name();
    EXPECT_EQ(before.find("AccumulateGrad") != std::string::npos, channels >= 16) << before;
  }
}

TEST(ActivationFunction, GivesOnlyTheWantedGradients) {
  const auto x = leaf({4, 6}, at::kFloat, false), bias = leaf({6});
  activation(Activation::kGelu, x, bias).sum().backward();
  EXPECT_TRUE(bias.grad().defined());
  EXPECT_FALSE(x.grad().defined());
  const auto other_x = leaf({4, 6}), fixed = leaf({6}, at::kFloat, false);
  // A gradient expanded from one element is not contiguous.
  activation(Activation::kGelu, other_x, fixed).sum().backward();
  EXPECT_TRUE(other_x.grad().defined());
  EXPECT_FALSE(fixed.grad().defined());
  EXPECT_FALSE(activation(Activation::kGelu, x, fixed).requires_grad());
}

TEST(ActivationFunction, TakesWhatItsKernelDoesNot) {
  const auto base = leaf({6, 4});
  const auto y = activation(Activation::kSilu, base.t(), leaf({6}));
  EXPECT_EQ(y.sizes(), at::IntArrayRef({4, 6}));
  const auto half = leaf({4, 6}, at::kHalf);
  EXPECT_EQ(activation(Activation::kRelu, half, leaf({6})).scalar_type(), at::kHalf);
  EXPECT_EQ(activation(Activation::kRelu, at::empty({0, 6})).numel(), 0);
}

TEST(SwigluFunction, HasTheLibrarysValuesAndGradientsHoweverItsInputLies) {
  for (const bool transposed : {false, true}) {
    const auto x = leaf({6, 5, 18}), true_x = fp64(x);
    const auto lay = [&](const at::Tensor& t) { return transposed ? t.transpose(0, 1) : t; };
    const auto y = swiglu(lay(x)), true_y = swiglu(lay(true_x));
    EXPECT_EQ(y.size(-1), 9);
    expect_close(y, true_y);
    (y * y).sum().backward();
    (true_y * true_y).sum().backward();
    expect_close(x.grad(), true_x.grad());
  }
}

TEST(EmbeddingFunction, HasTheLibrarysValuesAndGradients) {
  for (const bool with_positions : {false, true}) {
    for (const bool transposed : {false, true}) {
      const auto tokens = at::randint(11, {4, 7}, at::kLong);
      const auto indices = transposed ? tokens.t() : tokens;
      const auto weight = leaf({11, 18}), true_weight = fp64(weight);
      const auto positions = with_positions ? leaf({9, 18}) : at::Tensor();
      const auto true_positions = with_positions ? fp64(positions) : at::Tensor();
      const auto y = functional::embedding(indices, weight, positions);
      const auto true_y = functional::embedding(indices, true_weight, true_positions);
      expect_close(y, true_y);
      (y * y).sum().backward();
      (true_y * true_y).sum().backward();
      expect_close(weight.grad(), true_weight.grad());
      if (with_positions) expect_close(positions.grad(), true_positions.grad());
    }
  }
}

TEST(DropoutFunction, DropsTheGradientWhereItDroppedTheNumber) {
  const auto numbers = at::tensor({int64_t{1}, int64_t{2}});
  const DropoutScope scope(numbers);
  for (const auto format : {at::kFloat, at::kBFloat16}) {
    const auto x = leaf({50, 40}, format);
    const auto y = functional::dropout(x, 0.25, true);
    y.sum().backward();  // Expanded from one number: not contiguous.
    const auto dropped = at::eq(y, 0);
    EXPECT_NEAR(dropped.to(at::kFloat).mean().item<double>(), 0.25, 0.05);
    EXPECT_TRUE(at::eq(x.grad(), 0).equal(dropped));
    EXPECT_NEAR(x.grad().to(at::kFloat).max().item<double>(), 1 / 0.75, 4e-3);
  }
  const auto x = leaf({50, 40});
  EXPECT_TRUE(functional::dropout(x, 0.25, false).is_same(x));
  EXPECT_TRUE(functional::dropout(x, 0, true).is_same(x));
  EXPECT_EQ(functional::dropout(fp64(x), 0.25, true).scalar_type(), at::kDouble);
}

TEST(DropoutFunction, DropsAllWithAProbabilityOf1) {
  for (const auto type : {at::kFloat, at::kBFloat16, at::kDouble}) {
    const auto x = leaf({6, 5}, type);
    const auto y = functional::dropout(x, 1.0, /*training=*/true);
    EXPECT_TRUE(at::equal(y, at::zeros_like(y)));
    y.sum().backward();
    EXPECT_TRUE(at::equal(x.grad(), at::zeros_like(x)));
    EXPECT_TRUE(at::equal(functional::dropout(x, 1.0, /*training=*/false), x));
  }
}

TEST(DropoutFunction, DrawsWhatTheScopesTensorHoldsAndNewNumbersForEveryCall) {
  const auto numbers = at::tensor({int64_t{1}, int64_t{2}});
  const auto x = at::ones({1000});
  const auto two = [&] {
    const DropoutScope scope(numbers);
    return std::vector{functional::dropout(x, 0.5, true), functional::dropout(x, 0.5, true)};
  };
  const auto first = two(), again = two();
  EXPECT_TRUE(first[0].equal(again[0]));
  EXPECT_TRUE(first[1].equal(again[1]));
  EXPECT_FALSE(first[0].equal(first[1]));
  numbers[1].fill_(3);
  EXPECT_FALSE(two()[0].equal(first[0]));
  numbers[1].fill_(2);
  {
    // An inner scope restarts and leaves the state of the outer one unchanged.
    const DropoutScope outer(numbers);
    functional::dropout(x, 0.5, true);
    EXPECT_TRUE(two()[0].equal(first[0]));
    EXPECT_TRUE(functional::dropout(x, 0.5, true).equal(first[1]));
  }
  // Without a scope, the seed comes from LibTorch's generator.
  at::manual_seed(5);
  const auto free = functional::dropout(x, 0.5, true), next = functional::dropout(x, 0.5, true);
  EXPECT_FALSE(free.equal(next));
  at::manual_seed(5);
  EXPECT_TRUE(functional::dropout(x, 0.5, true).equal(free));
}

// LibTorch's own dropout would draw from its generator instead.
TEST(DropoutFunction, DrawsTheScopesNumbersForEveryLayout) {
  const auto numbers = at::tensor({int64_t{1}, int64_t{2}});
  const auto image = at::ones({2, 8, 6, 5}).contiguous(at::MemoryFormat::ChannelsLast);
  for (const at::Tensor& x : {at::ones({40, 50}).t(), image, at::ones({40, 100}).slice(1, 0, 60),
                              at::ones({1, 50}).expand({40, 50}), at::ones({60}, at::kHalf)}) {
    const auto dropped = [&](uint64_t generator_seed) {
      at::manual_seed(generator_seed);
      const DropoutScope scope(numbers);
      return functional::dropout(x, 0.25, true);
    };
    const at::Tensor y = dropped(1);
    EXPECT_TRUE(y.equal(dropped(2))) << x.sizes();
    EXPECT_EQ(y.sizes(), x.sizes());
    EXPECT_NEAR(y.eq(0).to(at::kFloat).mean().item<double>(), 0.25, 0.15) << x.sizes();
    EXPECT_EQ(y.is_contiguous(at::MemoryFormat::ChannelsLast), x.is_same(image));
  }
}

TEST(AttentionDropout, IsLibTorchsAttentionButForTheWeightsThatItDrops) {
  at::manual_seed(3);
  const at::Tensor query = at::randn({2, 4, 5, 8}), key = at::randn({2, 2, 7, 8}),
                   value = at::randn({2, 2, 7, 6});
  at::Tensor allowed = at::rand({2, 1, 5, 7}).gt(0.3);
  allowed.select(2, 1).fill_(false);  // A query that attends to nothing.
  const at::Tensor added = at::randn({5, 7});
  const std::vector<AttentionDropout> cases = {
      {}, {.mask = allowed}, {.mask = added}, {.is_causal = true}, {.scale = 0.7}};
  for (const AttentionDropout& options : cases) {
    const auto wanted = at::scaled_dot_product_attention(query, key, value, options.mask, 0.0,
                                                         options.is_causal, options.scale,
                                                         /*enable_gqa=*/true);
    EXPECT_TRUE(
        at::allclose(attention_with_dropout(query, key, value, options), wanted, 1e-4, 1e-5));
  }
  // With values that are the identity, the output is the weights.
  const DropoutScope scope(at::tensor({int64_t{1}, int64_t{2}}));
  const at::Tensor identity = at::eye(7).expand({2, 4, 7, 7}), keys = at::randn({2, 4, 7, 8});
  const at::Tensor weights = at::softmax(at::matmul(query, keys.transpose(2, 3)), -1);
  const at::Tensor y = attention_with_dropout(query, keys, identity, {.p = 0.25, .scale = 1});
  const at::Tensor kept = y.ne(0);
  EXPECT_NEAR(kept.to(at::kFloat).mean().item<double>(), 0.75, 0.1);
  EXPECT_TRUE(at::allclose(y, weights.mul(kept).div(0.75), 1e-4, 1e-6));
}

TEST(LinearFunction, IsItsProductAndActivationForFewAndManyNumbers) {
  Initializer initializer(1);
  Linear linear(initializer, {.in = 64, .out = 40});
  for (const int64_t rows : {20, 2000}) {
    const auto x = leaf({rows, 64});
    const auto gradients = [&](const at::Tensor& y) {
      auto inputs = linear.parameters();
      inputs.push_back(x);
      return torch::autograd::grad({(y * y).sum()}, inputs);
    };
    const auto found = linear.forward(x, Activation::kGelu);
    const auto apart = activation(Activation::kGelu, linear.forward(x));
    expect_close(found, apart.to(at::kDouble));
    const auto all = gradients(found), truths = gradients(apart);
    for (size_t i = 0; i < all.size(); ++i) expect_close(all[i], truths[i].to(at::kDouble));
  }
}

TEST(Functions, RefuseGradientsOfGradients) {
  const auto x = leaf({4, 6}), weight = leaf({6});
  const auto y = activation(Activation::kGelu, x);
  EXPECT_THROW(torch::autograd::grad({y.sum()}, {x}, {}, std::nullopt, /*create_graph=*/true),
               UsageError);
  for (const auto& other : {swiglu(x), functional::dropout(x, 0.5, true)}) {
    EXPECT_THROW(torch::autograd::grad({other.sum()}, {x}, {}, std::nullopt, /*create_graph=*/true),
                 UsageError);
  }
  const auto rows = functional::embedding(at::zeros({3}, at::kLong), x);
  EXPECT_THROW(torch::autograd::grad({rows.sum()}, {x}, {}, std::nullopt, /*create_graph=*/true),
               UsageError);
  const auto normed = layer_norm({x}, weight, {}, 1e-5, false).y;
  EXPECT_THROW(torch::autograd::grad({normed.sum()}, {x}, {}, std::nullopt, /*create_graph=*/true),
               UsageError);
}

TEST(LayerNormFunction, HasTheLibrarysValuesAndGradients) {
  for (const bool rms : {false, true}) {
    for (const bool with_residual : {false, true}) {
      for (const bool with_bias : {false, true}) {
        if (rms && with_bias) continue;
        const auto x = leaf({3, 5, 18}), weight = leaf({18});
        const auto residual = with_residual ? leaf({3, 5, 18}) : at::Tensor();
        const auto bias = with_bias ? leaf({18}) : at::Tensor();
        const auto copy = [](const at::Tensor& t) { return t.defined() ? fp64(t) : t; };
        const auto true_x = copy(x), true_residual = copy(residual), true_weight = copy(weight),
                   true_bias = copy(bias);
        const auto residual_bias = with_residual ? leaf({18}) : at::Tensor(),
                   true_residual_bias = copy(residual_bias);
        const auto found = layer_norm({x, residual, residual_bias}, weight, bias, 1e-5, rms);
        const auto truth = layer_norm({true_x, true_residual, true_residual_bias}, true_weight,
                                      true_bias, 1e-5, rms);
        expect_close(found.y, truth.y);
        expect_close(found.sum, truth.sum);
        ((found.y * found.y * found.y).sum() + (found.sum * found.sum).sum()).backward();
        ((truth.y * truth.y * truth.y).sum() + (truth.sum * truth.sum).sum()).backward();
        expect_close(x.grad(), true_x.grad());
        expect_close(weight.grad(), true_weight.grad());
        if (with_residual) {
          expect_close(residual.grad(), true_residual.grad());
          expect_close(residual_bias.grad(), true_residual_bias.grad());
        }
        if (with_bias) expect_close(bias.grad(), true_bias.grad());
      }
    }
  }
}

TEST(GroupNormFunction, HasTheLibrarysValuesAndGradientsInChannelsLast) {
  constexpr int64_t kGroups = 4;
  for (const at::ScalarType type : {at::kFloat, at::kBFloat16}) {
    // A mean of 30 deviations costs formulas of squares their digits.
    for (const double mean : {0.0, 30.0}) {
      const at::Tensor x = (at::randn({3, 12, 5, 7}) + mean)
                               .to(type)
                               .contiguous(at::MemoryFormat::ChannelsLast)
                               .requires_grad_();
      const at::Tensor weight = at::randn({12}).requires_grad_(),
                       bias = at::randn({12}).requires_grad_();
      const at::Tensor dy = at::randn({3, 12, 5, 7}).to(type);
      const at::Tensor y = functional::channels_last_group_norm(x, kGroups, weight, bias, 1e-5);
      EXPECT_EQ(y.scalar_type(), type);
      EXPECT_TRUE(y.is_contiguous(at::MemoryFormat::ChannelsLast));
      const auto found = torch::autograd::grad({y}, {x, weight, bias}, {dy});
      EXPECT_TRUE(found[0].is_contiguous(at::MemoryFormat::ChannelsLast));

      const auto wide = [](const at::Tensor& tensor) {
        return tensor.detach().to(at::kDouble).requires_grad_();
      };
      const at::Tensor x64 = wide(x), weight64 = wide(weight), bias64 = wide(bias);
      const at::Tensor y64 = at::group_norm(x64, kGroups, weight64, bias64, 1e-5);
      const auto wanted =
          torch::autograd::grad({y64}, {x64, weight64, bias64}, {dy.to(at::kDouble)});
      const double tolerance = type == at::kFloat ? 2e-5 : 2e-2;
      const auto is_near = [&](const at::Tensor& a, const at::Tensor& b, double within) {
        const double size = b.abs().max().item<double>();
        return (a.to(at::kDouble) - b).abs().max().item<double>() <= within * size;
      };
      EXPECT_TRUE(is_near(y.detach(), y64.detach(), tolerance)) << mean;
      EXPECT_TRUE(is_near(found[0], wanted[0], tolerance)) << mean;
      // Summed in fp32 whatever the type of x.
      EXPECT_TRUE(is_near(found[1], wanted[1], 2e-5)) << mean;
      EXPECT_TRUE(is_near(found[2], wanted[2], 2e-5)) << mean;
    }
  }
}

TEST(GroupNormFunction, ReturnsFp32UnderAutocast) {
  const CpuAutocast autocast(at::kBFloat16);
  const at::Tensor x =
      at::randn({2, 8, 4, 4}).to(at::kBFloat16).contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor ones = at::ones({8});
  EXPECT_EQ(functional::channels_last_group_norm(x, 2, ones, ones, 1e-5).scalar_type(), at::kFloat);
}

// LibTorch's operator preserves the format of tensors that are not on a GPU.
TEST(GroupNormFunction, IsLibTorchsElsewhere) {
  const at::Tensor x = at::randn({2, 8, 4, 4}).contiguous(at::MemoryFormat::ChannelsLast);
  const at::Tensor weight = at::randn({8}), bias = at::randn({8});
  EXPECT_FALSE(functional::takes_channels_last_group_norm(x, weight, bias));
  EXPECT_TRUE(at::equal(functional::group_norm(x, 2, weight, bias, 1e-5),
                        at::group_norm(x, 2, weight, bias, 1e-5)));
}

TEST(LayerNormFunction, GivesTheResidualsBiasItsGradientFromTheSumAlone) {
  const auto x = leaf({4, 6}), residual = leaf({4, 6}), bias = leaf({6}), weight = leaf({6});
  layer_norm({x, residual, bias}, weight, {}, 1e-5, false).sum.sum().backward();
  expect_close(bias.grad(), at::full({6}, 4.0, at::kDouble));
  EXPECT_FALSE(weight.grad().defined());
  const auto fixed = leaf({6}, at::kFloat, false);
  layer_norm({x, residual, fixed}, weight, bias, 1e-5, false).y.sum().backward();
  EXPECT_FALSE(fixed.grad().defined());
}

TEST(LayerNormFunction, WritesBf16UnderAutocastAndKeepsTheStream) {
  const auto weight = leaf({18}), bias = leaf({18});
  for (const bool swapped : {false, true}) {
    const auto stream = leaf({7, 18}), branch = leaf({7, 18}, at::kBFloat16);
    NormedSum found;
    {
      const CpuAutocast autocast(at::kBFloat16);
      found = swapped ? layer_norm({branch, stream}, weight, bias, 1e-5, false)
                      : layer_norm({stream, branch}, weight, bias, 1e-5, false);
    }
    EXPECT_EQ(found.y.scalar_type(), at::kBFloat16);
    EXPECT_EQ(found.sum.scalar_type(), at::kFloat);
    (found.y.to(at::kFloat).square().sum() + found.sum.square().sum()).backward();
    EXPECT_EQ(stream.grad().scalar_type(), at::kFloat);
    EXPECT_TRUE(branch.grad().equal(stream.grad().to(at::kBFloat16)));
    const auto true_stream = fp64(stream), true_branch = fp64(branch);
    const auto truth =
        layer_norm({true_stream, true_branch}, fp64(weight), fp64(bias), 1e-5, false);
    (truth.y.square().sum() + truth.sum.square().sum()).backward();
    expect_close(stream.grad(), true_stream.grad(), 1e-2);
  }
}

TEST(LayerNormFunction, GivesOnlyTheWantedGradients) {
  const auto weight = leaf({6}, at::kFloat, false);
  const auto x = leaf({4, 6}), residual = leaf({4, 6}, at::kBFloat16, false);
  const auto found = layer_norm({x, residual}, weight, {}, 1e-5, false);
  (found.y + found.sum).sum().backward();
  EXPECT_TRUE(x.grad().defined());
  EXPECT_FALSE(residual.grad().defined());
  EXPECT_FALSE(weight.grad().defined());

  // Only one of the two results has a gradient.
  const auto other = leaf({4, 6}), branch = leaf({4, 6}, at::kBFloat16);
  layer_norm({other, branch}, weight, {}, 1e-5, false).sum.sum().backward();
  EXPECT_TRUE(other.grad().equal(at::ones({4, 6})));
  EXPECT_TRUE(branch.grad().equal(at::ones({4, 6}, at::kBFloat16)));
  layer_norm({other, branch}, weight, {}, 1e-5, false).y.square().sum().backward();
  EXPECT_FALSE(other.grad().equal(at::ones({4, 6})));
}

TEST(LayerNormFunction, TakesWhatItsKernelDoesNot) {
  const auto x = leaf({6, 4}), weight = leaf({6});
  const auto found = layer_norm({x.t(), x.t()}, weight, weight, 1e-5, false);
  found.y.square().sum().backward();
  EXPECT_EQ(x.grad().sizes(), x.sizes());
  EXPECT_EQ(layer_norm({at::empty({0, 6})}, weight, {}, 1e-5, true).y.numel(), 0);
}

}  // namespace
}  // namespace gallop::model::functional
