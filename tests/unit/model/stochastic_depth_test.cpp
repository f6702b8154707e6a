#include "gallop/model/functional/stochastic_depth.h"

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <ATen/Functions.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/model/functional/dropout.h"
#include "gallop/model/gpt.h"
#include "gallop/model/resnet.h"
#include "gallop/model/vit.h"
#include "unit/model/cpu_autocast.h"

namespace gallop::model::functional {
namespace {

const Task kImages{.channels = 3, .height = 8, .width = 8, .classes = 5};
const Task kText{.kind = Task::Kind::kText, .classes = 11, .context = 8};

at::Tensor key(int64_t seed, int64_t step) { return at::tensor({seed, step}); }

at::Tensor factors(int64_t samples, double p, int64_t seed, int64_t step, int call = 1) {
  const DropoutScope scope(key(seed, step));
  at::Tensor drawn;
  for (int i = 0; i < call; ++i) drawn = drop_samples(at::ones({samples}), p, true);
  return drawn;
}

TEST(StochasticDepth, RisesFromNothingToTheLastBlock) {
  EXPECT_EQ(stochastic_depth_rates(0.3, 4).front(), 0);
  const auto rates = stochastic_depth_rates(0.3, 4);
  for (size_t i = 0; i < 4; ++i) EXPECT_NEAR(rates[i], 0.1 * static_cast<double>(i), 1e-15);
  EXPECT_EQ(stochastic_depth_rates(0.3, 4).back(), 0.3);
}

TEST(StochasticDepth, DropsWholeSamplesAndKeepsTheExpectedValue) {
  constexpr int64_t kSamples = 20'000;
  constexpr double kRate = 0.25;
  for (const auto format : {at::kFloat, at::kBFloat16, at::kDouble}) {
    const DropoutScope scope(key(1, 2));
    const auto x = at::randn({kSamples, 3, 2}).to(format), y = drop_samples(x, kRate, true);
    EXPECT_EQ(y.scalar_type(), format);
    const auto is_zero = y.eq(0).all(1).all(1);
    // Four standard deviations of a binomial fraction.
    EXPECT_NEAR(is_zero.to(at::kDouble).mean().item<double>(), kRate,
                4 * std::sqrt(kRate * (1 - kRate) / kSamples));
    const auto kept = is_zero.logical_not().nonzero().squeeze(1);
    const auto wanted = x.index_select(0, kept).to(at::kDouble).div(1 - kRate).to(format);
    // Scaled in fp32.
    const double tolerance = format == at::kBFloat16 ? 0x1p-7 : 1e-6;
    EXPECT_TRUE(at::allclose(y.index_select(0, kept), wanted, tolerance, 0));
  }
}

TEST(StochasticDepth, DrawsByTheSeedTheStepAndThePlace) {
  const auto drawn = factors(64, 0.5, 1, 7);
  EXPECT_TRUE(at::equal(factors(64, 0.5, 1, 7), drawn));
  EXPECT_FALSE(at::equal(factors(64, 0.5, 2, 7), drawn));
  EXPECT_FALSE(at::equal(factors(64, 0.5, 1, 8), drawn));
  EXPECT_FALSE(at::equal(factors(64, 0.5, 1, 7, /*call=*/2), drawn));
}

TEST(StochasticDepth, IsNotThatOfADropoutThatVaries) {
  const DropoutScope scope(key(1, 7), at::full({}, 0.9F));
  EXPECT_TRUE(at::equal(drop_samples(at::ones({64}), 0.5, true), factors(64, 0.5, 1, 7)));
}

TEST(StochasticDepth, IsOffInEvaluation) {
  const auto x = at::randn({4, 3});
  EXPECT_TRUE(drop_samples(x, 0.5, false).is_same(x));
  EXPECT_TRUE(drop_samples(x, 0, true).is_same(x));
  const auto plain = make_resnet({.depth = 8}, kImages, 1);
  const auto model = make_resnet({.depth = 8, .stochastic_depth = 0.5}, kImages, 1);
  for (const auto& one : {plain.get(), model.get()}) one->set_training(false);
  const auto input = at::randn({6, 3, 8, 8});
  EXPECT_TRUE(at::equal(model->forward(input), plain->forward(input)));
}

// A network's tensors by name, in fp64.
struct Weights {
  explicit Weights(const Model& model) {
    for (const auto& [name, tensor] : model.parameters()) {
      all[name] = tensor.detach().to(at::kDouble).requires_grad_();
    }
  }
  at::Tensor norm(const std::string& name, const at::Tensor& x) {
    return at::batch_norm(x, all.at(name + ".weight"), all.at(name + ".bias"), {}, {}, true, 0.1,
                          1e-5, false);
  }
  at::Tensor conv(const std::string& name, const at::Tensor& x, int64_t stride = 1) {
    const auto& weight = all.at(name + ".weight");
    return at::conv2d(x, weight, {}, stride, weight.size(2) / 2);
  }
  std::map<std::string, at::Tensor> all;
};

// ResNet-8 by the paper's formula: y = relu(b F(x) / (1 - p) + shortcut(x)), b of 0 or 1 a sample.
at::Tensor resnet_by_formula(Weights& w, const at::Tensor& input,
                             const std::vector<at::Tensor>& block_factors) {
  auto x = w.norm("bn1", w.conv("conv1", input)).relu();
  for (size_t stage = 1; stage <= 3; ++stage) {
    const std::string block = "layer" + std::to_string(stage) + ".0.";
    const int64_t stride = stage > 1 ? 2 : 1;
    auto y = w.norm(block + "bn1", w.conv(block + "conv1", x, stride)).relu();
    y = w.norm(block + "bn2", w.conv(block + "conv2", y));
    if (stage > 1) {
      x = w.norm(block + "downsample.1", w.conv(block + "downsample.0", x, stride));
    }
    x = (y * block_factors[stage - 1].to(at::kDouble).view({-1, 1, 1, 1}) + x).relu();
  }
  return at::linear(x.mean({2, 3}), w.all.at("fc.weight"), w.all.at("fc.bias"));
}

TEST(StochasticDepth, OfAResnetHasTheFormulasValuesAndGradients) {
  constexpr int64_t kSamples = 12;
  const auto model = make_resnet({.depth = 8, .stochastic_depth = 0.5}, kImages, 1);
  Weights weights(*model);
  const auto input = at::randn({kSamples, 3, 8, 8});
  const auto found = [&] {
    const DropoutScope scope(key(3, 4));
    return model->forward(input);
  }();
  const auto wanted = resnet_by_formula(
      weights, input.to(at::kDouble),
      {at::ones({kSamples}), factors(kSamples, 0.25, 3, 4), factors(kSamples, 0.5, 3, 4, 2)});
  EXPECT_TRUE(at::allclose(found.to(at::kDouble), wanted, 1e-4, 1e-4));
  const auto direction = at::randn({kSamples, 5});
  found.backward(direction);
  wanted.backward(direction.to(at::kDouble));
  for (const auto& [name, tensor] : model->parameters()) {
    const auto& truth = weights.all.at(name).grad();
    EXPECT_LE((tensor.grad().to(at::kDouble) - truth).norm().item<double>(),
              1e-3 * truth.norm().item<double>() + 1e-6)
        << name;
  }
}

// The outcomes of a sample if each branch of the last layer is dropped (0) or doubled (2).
std::vector<at::Tensor> each_outcome(Model& plain, const std::string& first,
                                     const std::string& second, const at::Tensor& input) {
  const at::NoGradGuard no_grad;
  std::vector<at::Tensor> outcomes;
  std::map<std::string, at::Tensor> kept;
  for (const auto& [name, tensor] : plain.parameters()) kept[name] = tensor.clone();
  for (const double a : {0.0, 2.0}) {
    for (const double b : {0.0, 2.0}) {
      for (const auto& [name, tensor] : plain.parameters()) {
        tensor.copy_(kept.at(name));
        if (name.starts_with(first)) tensor.mul_(a);
        if (name.starts_with(second)) tensor.mul_(b);
      }
      outcomes.push_back(plain.forward(input));
    }
  }
  return outcomes;
}

void expect_outcomes(Model& model, Model& plain, const std::string& first,
                     const std::string& second, const at::Tensor& input, double tolerance = 1e-4) {
  const at::NoGradGuard no_grad;
  const DropoutScope scope(key(5, 6));
  const auto found = model.forward(input);
  const auto outcomes = each_outcome(plain, first, second, input);
  std::vector<int> times(outcomes.size());
  for (int64_t sample = 0; sample < input.size(0); ++sample) {
    for (size_t i = 0; i < outcomes.size(); ++i) {
      if (at::allclose(found[sample], outcomes[i][sample], tolerance, tolerance)) times[i] += 1;
    }
  }
  int sum = 0;
  for (const int one : times) {
    EXPECT_GT(one, 0);
    sum += one;
  }
  EXPECT_EQ(sum, input.size(0));
}

TEST(StochasticDepth, OfATransformerSkipsOrScalesEachPart) {
  const VitConfig vit{.patch = 4, .width = 12, .depth = 2, .heads = 2, .linear_init = "default"};
  auto skipping = vit;
  skipping.stochastic_depth = 0.5;
  expect_outcomes(*make_vit(skipping, kImages, 1), *make_vit(vit, kImages, 1),
                  "blocks.1.attn.proj.", "blocks.1.mlp.fc2.", at::randn({40, 3, 8, 8}));
  const GptConfig gpt{.layers = 2, .width = 12, .heads = 2, .linear_init = "default"};
  auto skipping_gpt = gpt;
  skipping_gpt.stochastic_depth = 0.5;
  expect_outcomes(*make_gpt(skipping_gpt, kText, 1), *make_gpt(gpt, kText, 1),
                  "transformer.h.1.attn.c_proj.", "transformer.h.1.mlp.c_proj.",
                  at::randint(11, {40, 8}, at::kLong));
}

TEST(StochasticDepth, KeepsTheFormatUnderAutocast) {
  const CpuAutocast autocast(at::kBFloat16);
  const auto model = make_vit(
      {.patch = 4, .width = 12, .depth = 3, .heads = 2, .stochastic_depth = 0.5}, kImages, 1);
  EXPECT_EQ(model->forward(at::randn({8, 3, 8, 8})).scalar_type(), at::kBFloat16);
  const auto resnet = make_resnet({.depth = 8, .stochastic_depth = 0.5}, kImages, 1);
  EXPECT_EQ(resnet->forward(at::randn({8, 3, 8, 8})).scalar_type(), at::kBFloat16);
}

TEST(StochasticDepth, IsRefusedWhereItSaysNothing) {
  const auto message_of = [](const auto& function) -> std::string {
    try {
      function();
    } catch (const UsageError& error) {
      return error.what();
    }
    return "no UsageError";
  };
  EXPECT_NE(message_of([] {
              make_vit({.width = 12, .depth = 1, .heads = 2, .stochastic_depth = 0.1}, kImages, 1);
            }).find("there is one block"),
            std::string::npos);
  EXPECT_NE(message_of([] {
              make_gpt({.layers = 1, .width = 12, .heads = 2, .stochastic_depth = 0.1}, kText, 1);
            }).find("there is one block"),
            std::string::npos);
  EXPECT_NE(message_of([] {
              make_resnet({.depth = 8, .shortcut = "none", .stochastic_depth = 0.1}, kImages, 1);
            }).find("shortcut is none"),
            std::string::npos);
}

}  // namespace
}  // namespace gallop::model::functional
