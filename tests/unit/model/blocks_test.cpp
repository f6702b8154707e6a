// Forward passes of parts of a model, as pipelines compute them.
#include <algorithm>
#include <functional>
#include <memory>
#include <string>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <gtest/gtest.h>

#include "gallop/model/functional/dropout.h"
#include "gallop/model/gpt.h"
#include "gallop/model/mixer.h"
#include "gallop/model/mlp.h"
#include "gallop/model/resnet.h"
#include "gallop/model/vit.h"

namespace gallop::model {
namespace {

const Task kImages{.channels = 3, .height = 8, .width = 8, .classes = 5};
const Task kText{.kind = Task::Kind::kText, .classes = 11, .context = 8};

struct Case {
  std::string name;
  std::function<std::unique_ptr<Model>()> make;
  bool text = false, channels_last = true;
};

struct Results {
  at::Tensor output;
  std::vector<at::Tensor> gradients, buffers;
};

// In parts from each of these blocks on.
Results run(const Case& tested, const at::Tensor& input, const at::Tensor& weights,
            std::vector<int64_t> begins) {
  const auto model = tested.make();
  model->to(at::kCPU, tested.channels_last);
  begins.push_back(static_cast<int64_t>(model->block_sequence().tensors.size()));
  const functional::DropoutScope scope(at::ones({2}, at::kLong));
  std::vector<at::Tensor> inputs = {at::Tensor()}, outputs;
  for (size_t i = 0; i + 1 < begins.size(); ++i) {
    const Output output =
        model->forward_blocks({{"input", input}}, {inputs.back()}, begins[i], begins[i + 1]);
    const bool is_last = i + 2 == begins.size();
    EXPECT_EQ(output.passed_on.size(), is_last ? 0 : 1);
    EXPECT_EQ(output.x.defined(), is_last);
    outputs.push_back(is_last ? output.logits() : output.passed_on.front());
    inputs.push_back(outputs.back().detach().set_requires_grad(true));
  }
  at::Tensor gradient = weights.expand_as(outputs.back());
  for (size_t i = outputs.size(); i-- > 0;) {
    outputs[i].backward(gradient);
    if (i > 0) gradient = inputs[i].grad();
  }
  Results results{.output = outputs.back().detach()};
  for (const auto& [name, tensor] : model->parameters()) results.gradients.push_back(tensor.grad());
  for (const auto& [name, tensor] : model->buffers()) results.buffers.push_back(tensor);
  return results;
}

class Blocks : public testing::TestWithParam<Case> {};

TEST_P(Blocks, HaveTheSameBitsInParts) {
  const Case& tested = GetParam();
  const at::Tensor input =
      tested.text ? at::randint(11, {3, 8}, at::kLong) : at::randn({3, 3, 8, 8});
  const at::Tensor weights = at::randn({tested.text ? 11 : 5});
  const auto model = tested.make();
  const auto blocks = static_cast<int64_t>(model->block_sequence().tensors.size());
  ASSERT_GE(blocks, 2);
  const Results whole = run(tested, input, weights, {0});
  std::vector<int64_t> all = {0};
  std::vector<std::vector<int64_t>> cuts;
  for (int64_t block = 1; block < blocks; ++block) {
    cuts.push_back({0, block});
    all.push_back(block);
  }
  cuts.push_back(all);
  for (const auto& begins : cuts) {
    SCOPED_TRACE(testing::PrintToString(begins));
    const Results parts = run(tested, input, weights, begins);
    EXPECT_TRUE(at::equal(parts.output, whole.output));
    for (size_t i = 0; i < whole.gradients.size(); ++i) {
      EXPECT_TRUE(at::equal(parts.gradients[i], whole.gradients[i])) << model->parameters()[i].name;
    }
    for (size_t i = 0; i < whole.buffers.size(); ++i) {
      EXPECT_TRUE(at::equal(parts.buffers[i], whole.buffers[i])) << model->buffers()[i].name;
    }
  }
}

// Each parameter and buffer is in one block.
TEST_P(Blocks, HaveAllTensors) {
  const auto model = GetParam().make();
  std::vector<std::string> listed, all;
  for (const auto& block : model->block_sequence().tensors) {
    listed.insert(listed.end(), block.begin(), block.end());
  }
  for (const auto& list : {model->parameters(), model->buffers()}) {
    for (const auto& [name, tensor] : list) all.push_back(name);
  }
  std::sort(listed.begin(), listed.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(listed, all);
}

INSTANTIATE_TEST_SUITE_P(
    All, Blocks,
    testing::Values(
        Case{"Gpt",
             [] {
               return make_gpt({.layers = 3, .width = 16, .heads = 2, .dropout = 0.1}, kText, 1);
             },
             true},
        Case{"UntiedGpt",
             [] {
               return make_gpt({.layers = 3, .width = 16, .heads = 2, .tied = false}, kText, 1);
             },
             true},
        Case{
            "Vit",
            [] { return make_vit({.patch = 4, .width = 16, .depth = 3, .heads = 2}, kImages, 1); }},
        Case{"VitMean",
             [] {
               return make_vit({.patch = 4, .width = 16, .depth = 3, .heads = 2, .pool = "mean"},
                               kImages, 1);
             }},
        Case{"Mixer", [] { return make_mixer({.patch = 4, .width = 16, .depth = 3}, kImages, 1); }},
        Case{"Mlp",
             [] {
               return make_mlp({.hidden = {24, 20, 16}, .dropout = 0.1}, kImages, 1);
             }},
        Case{"Resnet", [] { return make_resnet({.depth = 20}, kImages, 1); }},
        Case{"ResnetContiguous", [] { return make_resnet({.depth = 20}, kImages, 1); }, false,
             false},
        Case{"ResnetPad", [] { return make_resnet({.depth = 20, .shortcut = "pad"}, kImages, 1); }},
        Case{"ResnetSkipping",
             [] { return make_resnet({.depth = 20, .stochastic_depth = 0.3}, kImages, 1); }}),
    [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace gallop::model
