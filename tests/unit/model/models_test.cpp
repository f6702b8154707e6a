#include <cmath>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randint.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/model/gpt.h"
#include "gallop/model/mlp.h"
#include "gallop/model/resnet.h"
#include "gallop/model/vit.h"
#include "unit/model/cpu_autocast.h"

namespace gallop::model {
namespace {

Task images(int64_t channels, int64_t height, int64_t width, int64_t classes = 10) {
  return {.kind = Task::Kind::kImages,
          .channels = channels,
          .height = height,
          .width = width,
          .classes = classes};
}

Task text(int64_t vocabulary, int64_t context) {
  return {.kind = Task::Kind::kText, .classes = vocabulary, .context = context};
}

InitialWeights sizes_only() {
  InitialWeights weights;
  weights.sizes_only = true;
  return weights;
}

int64_t count(const Model& model) {
  int64_t sum = 0;
  for (const auto& parameter : model.parameters()) sum += parameter.tensor.numel();
  return sum;
}

// Runs forward and backward; every parameter must get a finite gradient.
void expect_trains(Model& model, const Task& task, int64_t batch) {
  const bool is_text = task.kind == Task::Kind::kText;
  const auto input = is_text ? at::randint(task.classes, {batch, task.context}, at::kLong)
                             : at::rand({batch, task.channels, task.height, task.width});
  const auto logits = model.forward(input);
  const auto sizes = is_text ? std::vector<int64_t>{batch, task.context, task.classes}
                             : std::vector<int64_t>{batch, task.classes};
  EXPECT_EQ(logits.sizes(), sizes);
  const auto flat = logits.flatten(0, -2);
  at::cross_entropy_loss(flat, at::randint(task.classes, {flat.size(0)}, at::kLong)).backward();
  for (const auto& [name, parameter] : model.parameters()) {
    ASSERT_TRUE(parameter.grad().defined()) << name;
    EXPECT_TRUE(parameter.grad().isfinite().all().item<bool>()) << name;
  }
}

template <typename F>
std::string message_of(F function) {
  try {
    function();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no UsageError";
}

TEST(Resnet, HasTheParametersOfTheLiterature) {
  const auto cifar = images(3, 32, 32);
  const auto imagenet = images(3, 224, 224, 1000);
  // He et al. 2016, table 6: 0.27 M, 0.85 M and 1.7 M with parameter-free shortcuts.
  EXPECT_EQ(count(*make_resnet({.depth = 20, .shortcut = "pad"}, cifar, sizes_only())), 269722);
  EXPECT_EQ(count(*make_resnet({.depth = 56, .shortcut = "pad"}, cifar, sizes_only())), 853018);
  EXPECT_EQ(count(*make_resnet({.depth = 110, .shortcut = "pad"}, cifar, sizes_only())), 1727962);
  EXPECT_EQ(count(*make_resnet({.depth = 20, .shortcut = "none"}, cifar, sizes_only())), 269722);
  // torchvision's documentation: 11689512, 21797672 and 25557032.
  EXPECT_EQ(count(*make_resnet({.depth = 18}, imagenet, sizes_only())), 11689512);
  EXPECT_EQ(count(*make_resnet({.depth = 34}, imagenet, sizes_only())), 21797672);
  EXPECT_EQ(count(*make_resnet({.depth = 50}, imagenet, sizes_only())), 25557032);
}

TEST(Resnet, TakesImagesOfAnySize) {
  for (const auto& task :
       {images(1, 1, 1), images(3, 7, 5), images(3, 33, 65), images(4, 64, 96)}) {
    for (const char* shortcut : {"projection", "pad", "none"}) {
      const auto model = make_resnet({.depth = 8, .shortcut = shortcut}, task, 1);
      expect_trains(*model, task, 3);
    }
  }
  const auto model = make_resnet({.depth = 8}, images(3, 32, 32), 1);
  EXPECT_EQ(model->forward(at::rand({2, 3, 41, 19})).sizes(), (std::vector<int64_t>{2, 10}));
}

TEST(Resnet, KeepsChannelsLast) {
  const auto task = images(3, 16, 16);
  for (const char* shortcut : {"projection", "pad"}) {
    const auto plain = make_resnet({.depth = 14, .shortcut = shortcut}, task, 1);
    const auto last = make_resnet({.depth = 14, .shortcut = shortcut}, task, 1);
    last->to(at::kCPU, /*channels_last=*/true);
    const auto input = at::rand({4, 3, 16, 16});
    const auto expected = plain->forward(input), actual = last->forward(input);
    EXPECT_LT((expected - actual).norm().item<double>(), 1e-5 * expected.norm().item<double>());
    actual.sum().backward();
    for (const auto& [name, parameter] : last->parameters()) {
      if (parameter.dim() != 4) continue;
      EXPECT_TRUE(parameter.is_contiguous(at::MemoryFormat::ChannelsLast)) << name;
      EXPECT_TRUE(parameter.grad().is_contiguous(at::MemoryFormat::ChannelsLast)) << name;
    }
  }
}

at::Tensor parameter_of(const Model& model, const std::string& name) {
  for (const auto& parameter : model.parameters()) {
    if (parameter.name == name) return parameter.tensor;
  }
  ADD_FAILURE() << "no parameter " << name;
  return {};
}

TEST(Resnet, RoundsChannelsToEight) {
  const auto narrow = make_resnet({.depth = 8, .width = 0.1}, images(3, 32, 32), sizes_only());
  EXPECT_EQ(parameter_of(*narrow, "layer3.0.conv2.weight").size(0), 8);
  const auto wide = make_resnet({.depth = 8, .width = 1.3}, images(3, 32, 32), sizes_only());
  EXPECT_EQ(parameter_of(*wide, "conv1.weight").size(0), 24);
  EXPECT_EQ(parameter_of(*wide, "layer3.0.conv2.weight").size(0), 80);
}

TEST(Resnet, StartsBlocksAsShortcutsWhereAsked) {
  int zeros = 0;
  for (const auto& [name, parameter] :
       make_resnet({.depth = 20, .zero_init_residual = true}, images(3, 32, 32), 1)->parameters()) {
    if (name.ends_with("bn2.weight")) zeros += parameter.abs().sum().item<float>() == 0;
  }
  EXPECT_EQ(zeros, 9);
}

TEST(Resnet, RefusesWhatItCannotBe) {
  EXPECT_NE(message_of([] { make_resnet({.depth = 21}, images(3, 32, 32), 1); }).find("depth 21"),
            std::string::npos);
  EXPECT_NE(message_of([] { make_resnet({}, text(65, 128), 1); }).find("text"), std::string::npos);
  EXPECT_THROW(make_resnet({.width = 0}, images(3, 32, 32), 1), UsageError);
  EXPECT_THROW(make_resnet({.conv_init = "zeros"}, images(3, 32, 32), 1), UsageError);
  EXPECT_THROW(make_resnet({}, images(3, 0, 32), 1), UsageError);
}

TEST(Mlp, Trains) {
  const auto task = images(1, 28, 28);
  const auto model = make_mlp({.activation = "gelu", .dropout = 0.1}, task, 1);
  EXPECT_EQ(count(*model), 784 * 256 + 256 + 256 * 128 + 128 + 128 * 10 + 10);
  expect_trains(*model, task, 4);
  expect_trains(*make_mlp({.hidden = {}}, task, 1), task, 4);
}

TEST(Mlp, RefusesWhatItCannotBe) {
  EXPECT_THROW(make_mlp({.hidden = {16, 0}}, images(1, 28, 28), 1), UsageError);
  EXPECT_THROW(make_mlp({}, text(65, 128), 1), UsageError);
}

TEST(Gpt, HasTheParametersOfGpt2) {
  const auto task = text(50257, 1024);
  EXPECT_EQ(count(*make_gpt({.layers = 12, .width = 768, .heads = 12}, task, sizes_only())),
            124439808);
  EXPECT_EQ(count(*make_gpt({.layers = 48, .width = 1600, .heads = 25}, task, sizes_only())),
            1557611200);
}

TEST(Gpt, TrainsInEveryForm) {
  const auto task = text(65, 12);
  const GptConfig base{.layers = 2, .width = 32, .heads = 4};
  auto variants = std::vector<GptConfig>(7, base);
  variants[1].dropout = 0.2;
  variants[2].bias = false;
  variants[3].tied = false;
  variants[4].positions = "rotary";
  variants[5].norm = "rms";
  variants[6].activation = "swiglu";
  for (const auto& config : variants) expect_trains(*make_gpt(config, task, 1), task, 3);
}

TEST(Gpt, HasLlamasFeedForwardWithSwiglu) {
  const auto model =
      make_gpt({.layers = 1, .width = 48, .heads = 4, .bias = false, .activation = "swiglu"},
               text(65, 12), 1);
  // 8/3 of the width rounded to a multiple of 64, twice that before the gate.
  EXPECT_EQ(parameter_of(*model, "transformer.h.0.mlp.c_fc.weight").sizes(),
            at::IntArrayRef({256, 48}));
  EXPECT_EQ(parameter_of(*model, "transformer.h.0.mlp.c_proj.weight").sizes(),
            at::IntArrayRef({48, 128}));
}

TEST(Gpt, SeesOnlyThePast) {
  for (const char* positions : {"learned", "rotary"}) {
    const auto model =
        make_gpt({.layers = 2, .width = 32, .heads = 4, .positions = positions}, text(65, 12), 1);
    auto tokens = at::randint(65, {2, 12}, at::kLong);
    const auto before = model->forward(tokens).narrow(1, 0, 7);
    tokens.narrow(1, 7, 5).fill_(3);
    EXPECT_LT((model->forward(tokens).narrow(1, 0, 7) - before).abs().max().item<float>(), 1e-6);
  }
}

TEST(Gpt, AttendsAlikeByBothWays) {
  // bf16 uses GEMMs up to 512 tokens and the fused kernel beyond; fp32 always uses the fused
  // kernel.
  const auto model = make_gpt({.layers = 1, .width = 32, .heads = 4}, text(65, 520), 1);
  const auto tokens = at::randint(65, {2, 520}, at::kLong);
  const auto expected = model->forward(tokens);
  at::Tensor fused, products;
  {
    const CpuAutocast autocast(at::kBFloat16);
    fused = model->forward(tokens);
    products = model->forward(tokens.narrow(1, 0, 512));
  }
  const double norm = expected.norm().item<double>();
  EXPECT_EQ(fused.scalar_type(), at::kBFloat16);
  EXPECT_LT((fused - expected).norm().item<double>(), 0.02 * norm);
  EXPECT_LT((products - expected.narrow(1, 0, 512)).norm().item<double>(), 0.02 * norm);
}

TEST(Gpt, StartsAsGpt2) {
  const auto model = make_gpt({.layers = 8, .width = 128, .heads = 4}, text(300, 64), 1);
  for (const auto& [name, parameter] : model->parameters()) {
    if (parameter.dim() == 1) continue;
    const double expected = name.ends_with("c_proj.weight") ? 0.02 / std::sqrt(16.0) : 0.02;
    EXPECT_NEAR(parameter.std().item<double>(), expected, 0.05 * expected) << name;
  }
}

// timm's truncated normal distribution has bounds of -2 and 2, which are 100 standard deviations.
TEST(Vit, StartsAsTimm) {
  const auto model =
      make_vit({.patch = 4, .width = 192, .depth = 2, .heads = 3}, images(3, 32, 32, 10), 1);
  for (const auto& [name, parameter] : model->parameters()) {
    const bool is_linear = name.find("attn") != std::string::npos ||
                           name.find("mlp") != std::string::npos || name == "pos_embed";
    if (parameter.dim() == 1 || !is_linear) continue;
    EXPECT_NEAR(parameter.std().item<double>(), 0.02, 0.0006) << name;
  }
}

TEST(Gpt, RefusesWhatItCannotBe) {
  const auto task = text(65, 128);
  EXPECT_NE(message_of([&] { make_gpt({.width = 256, .heads = 7}, task, 1); }).find("7 heads"),
            std::string::npos);
  EXPECT_NE(message_of([] { make_gpt({}, images(3, 32, 32), 1); }).find("images"),
            std::string::npos);
  EXPECT_THROW(make_gpt({.layers = 0}, task, 1), UsageError);
  EXPECT_THROW(make_gpt({.width = 24, .heads = 8, .positions = "rotary"}, task, 1), UsageError);
  const auto model = make_gpt({.layers = 1, .width = 8, .heads = 1}, text(65, 4), 1);
  EXPECT_THROW(model->forward(at::randint(65, {1, 5}, at::kLong)), UsageError);
}

TEST(Vit, HasTheParametersOfTimm) {
  const auto task = images(3, 224, 224, 1000);
  EXPECT_EQ(count(*make_vit({.patch = 16}, task, sizes_only())), 5717416);
  EXPECT_EQ(count(*make_vit({.patch = 16, .width = 768, .heads = 12}, task, sizes_only())),
            86567656);
}

TEST(Vit, Trains) {
  const auto task = images(3, 16, 24);
  for (const char* pool : {"token", "mean"}) {
    const auto model = make_vit(
        {.width = 24, .depth = 2, .heads = 3, .mlp_ratio = 2, .dropout = 0.1, .pool = pool}, task,
        1);
    expect_trains(*model, task, 3);
  }
}

TEST(Vit, RefusesWhatItCannotBe) {
  const auto task = images(3, 32, 32);
  EXPECT_NE(message_of([] { make_vit({.patch = 8}, images(3, 4, 32), 1); }).find("smaller"),
            std::string::npos);
  EXPECT_NE(message_of([&] { make_vit({.patch = 5}, task, 1); }).find("do not fill"),
            std::string::npos);
  EXPECT_NE(message_of([&] { make_vit({.heads = 5}, task, 1); }).find("5 heads"),
            std::string::npos);
  EXPECT_THROW(make_vit({}, text(65, 128), 1), UsageError);
  const auto model = make_vit({.width = 8, .depth = 1, .heads = 1}, task, 1);
  EXPECT_THROW(model->forward(at::rand({1, 3, 3, 32})), UsageError);
}

TEST(Models, StartAlikeForOneSeed) {
  const auto task = images(3, 32, 32);
  const auto first = make_resnet({.depth = 8}, task, 7)->parameters();
  const auto same = make_resnet({.depth = 8}, task, 7)->parameters();
  const auto other = make_resnet({.depth = 8}, task, 8)->parameters();
  ASSERT_EQ(first.size(), same.size());
  for (size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(first[i].tensor.equal(same[i].tensor));
  EXPECT_FALSE(first[0].tensor.equal(other[0].tensor));
}

TEST(Models, DrawWeightsByTheirScheme) {
  const auto task = images(3, 32, 32);
  const auto std_of = [&](const char* init) {
    const auto model = make_resnet({.conv_init = init}, task, 1);
    return parameter_of(*model, "layer3.0.conv1.weight").std().item<double>();
  };
  const double in = 32 * 9, out = 64 * 9;
  EXPECT_NEAR(std_of("default"), std::sqrt(1 / (3 * in)), 1e-3);
  EXPECT_NEAR(std_of("xavier-uniform"), std::sqrt(2 / (in + out)), 1e-3);
  EXPECT_NEAR(std_of("xavier-normal"), std::sqrt(2 / (in + out)), 1e-3);
  EXPECT_NEAR(std_of("kaiming-uniform"), std::sqrt(2 / out), 1e-3);
  EXPECT_NEAR(std_of("kaiming-normal"), std::sqrt(2 / out), 1e-3);
}

TEST(Models, DropOnlyInTraining) {
  const auto model = make_mlp({.dropout = 0.5}, images(1, 8, 8), 1);
  const auto input = at::rand({4, 1, 8, 8});
  EXPECT_FALSE(model->forward(input).equal(model->forward(input)));
  model->set_training(false);
  EXPECT_FALSE(model->training());
  EXPECT_TRUE(model->forward(input).equal(model->forward(input)));
}

}  // namespace
}  // namespace gallop::model
