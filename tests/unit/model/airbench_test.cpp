#include "gallop/model/airbench.h"

#include <map>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/eye.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/max_pool2d.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "gallop/model/initializer.h"
#include "unit/base/error_of.h"

namespace gallop::model {
namespace {

constexpr Task kImages{.channels = 3, .height = 32, .width = 32, .classes = 10};

std::map<std::string, at::Tensor> tensors_of(const Model& model) {
  std::map<std::string, at::Tensor> tensors;
  for (const auto& [name, tensor] : model.parameters()) tensors[name] = tensor;
  for (const auto& [name, tensor] : model.buffers()) tensors[name] = tensor;
  return tensors;
}

double distance(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

// The network of the paper's listing, with LibTorch's operators.
at::Tensor plain_forward(const std::map<std::string, at::Tensor>& t, const at::Tensor& images) {
  const auto norm = [&](const at::Tensor& x, const std::string& name) {
    return at::batch_norm(x, t.at(name + ".weight"), t.at(name + ".bias"), {}, {},
                          /*training=*/true, 0.1, 1e-5, false);
  };
  auto x = at::gelu(at::conv2d(images, t.at("whiten.weight"), t.at("whiten.bias")));
  for (const std::string layer : {"layer1", "layer2", "layer3"}) {
    x = at::conv2d(x, t.at(layer + ".conv1.weight"), {}, 1, 1);
    x = at::gelu(norm(at::max_pool2d(x, 2), layer + ".bn1"));
    x = at::conv2d(x, t.at(layer + ".conv2.weight"), {}, 1, 1);
    x = at::gelu(norm(x, layer + ".bn2"));
  }
  x = at::max_pool2d(x, 3).flatten(1);
  return at::linear(x, t.at("head.weight")) / 9;
}

TEST(Airbench, IsThePapersNetwork) {
  auto generator = at::detail::createCPUGenerator(1);
  const auto images = at::randn({8, 3, 32, 32}, generator, at::kFloat);
  const auto target = at::randint(10, {8}, generator, at::kLong);
  for (const bool channels_last : {false, true}) {
    const auto model = make_airbench({}, kImages, 1);
    int64_t parameters = 0;
    for (const auto& parameter : model->parameters()) parameters += parameter.tensor.numel();
    EXPECT_EQ(parameters, 1971352);  // "1.97M" in its table.
    model->to(at::kCPU, channels_last);
    const auto tensors = tensors_of(*model);
    const auto expected = plain_forward(tensors, images);
    at::cross_entropy_loss(expected, target).backward();
    std::map<std::string, at::Tensor> gradients;
    for (const auto& [name, parameter] : model->parameters()) {
      gradients[name] = parameter.grad().clone();
      parameter.mutable_grad().reset();
    }
    const auto logits = model->forward(images);
    EXPECT_LT(distance(logits, expected), 1e-5);
    at::cross_entropy_loss(logits, target).backward();
    for (const auto& [name, parameter] : model->parameters()) {
      EXPECT_LT(distance(parameter.grad(), gradients[name]), 1e-4) << name;
    }
  }
}

TEST(Airbench, WhitensItsFirstLayer) {
  // Neighboring pixels of natural images are similar.
  auto generator = at::detail::createCPUGenerator(2);
  const auto noise = at::randn({64, 3, 17, 17}, generator, at::kFloat);
  const auto images = noise.slice(2, 0, 16) + noise.slice(2, 1, 17);
  const auto input = images.slice(3, 0, 16) + images.slice(3, 1, 17);
  const Task task{.channels = 3, .height = 16, .width = 16, .classes = 10};
  const auto model = make_airbench({.widths = {8}, .whitening_eps = 1e-12}, task, 1);
  EXPECT_GT(model->images_to_initialize(), 1000);
  model->initialize_from(input);
  const auto weight = tensors_of(*model)["whiten.weight"];
  ASSERT_EQ(weight.sizes(), (std::vector<int64_t>{24, 3, 2, 2}));
  EXPECT_TRUE(weight.slice(0, 0, 12).equal(-weight.slice(0, 12)));
  const auto y = at::conv2d(input, weight.slice(0, 0, 12)).transpose(0, 1).flatten(1);
  const auto covariance = y.mm(y.t()) / static_cast<double>(y.size(1));
  EXPECT_LT((covariance - at::eye(12)).abs().max().item<double>(), 1e-3);
  // Directions of largest variance, whose weights are smallest, come first.
  const auto norms = weight.slice(0, 0, 12).flatten(1).norm(2, {1});
  EXPECT_TRUE((norms.slice(0, 1) >= norms.slice(0, 0, 11)).all().item<bool>());

  const auto again = make_airbench({.widths = {8}, .whitening_eps = 1e-12}, task, 7);
  again->initialize_from(input);
  EXPECT_TRUE(tensors_of(*again)["whiten.weight"].equal(weight));
}

TEST(Airbench, DiracFiltersPassTheirChannel) {
  Initializer init(3);
  const auto x = at::randn({2, 4, 5, 5});
  const auto weight = init.weight({6, 4, 3, 3}, parse_init("dirac"));
  const auto y = at::conv2d(x, weight, {}, 1, 1);
  EXPECT_TRUE(y.slice(1, 0, 4).equal(x));
  EXPECT_GT(weight.slice(0, 4).abs().min().item<double>(), 0);
  const auto few = init.weight({2, 4, 3, 3}, parse_init("dirac"));
  EXPECT_TRUE(at::conv2d(x, few, {}, 1, 1).equal(x.slice(1, 0, 2)));
}

TEST(Airbench, RefusesWhatItCannotTake) {
  const auto error_for = [](const AirbenchConfig& config, const Task& task) {
    return error_of([&] { make_airbench(config, task, 1); });
  };
  EXPECT_EQ(error_for({}, {.channels = 1, .height = 8, .width = 30, .classes = 2}),
            "airbench: images of 8x30 are too small for 3 stages, each of which halves them");
  const auto model = make_airbench({}, kImages, 1);
  EXPECT_EQ(error_of([&] {
              model->forward(at::rand({1, kImages.channels, 8, 8}));
            }),
            "airbench: images of 8x8 are too small for 3 stages, each of which halves them");
  EXPECT_EQ(error_for({.widths = {}}, kImages), "airbench: widths must name at least one stage");
  EXPECT_NE(error_for({}, {.kind = Task::Kind::kText, .classes = 9, .context = 4}).find("text"),
            std::string::npos);
}

}  // namespace
}  // namespace gallop::model
