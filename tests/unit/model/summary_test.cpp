#include "gallop/model/summary.h"

#include <algorithm>

#include <ATen/ops/rand.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/model/gpt.h"
#include "gallop/model/mlp.h"
#include "gallop/model/resnet.h"
#include "gallop/model/vit.h"

namespace gallop::model {
namespace {

Task images(int64_t size, int64_t classes) {
  return {.kind = Task::Kind::kImages,
          .channels = 3,
          .height = size,
          .width = size,
          .classes = classes};
}

const LayerSummary& find(const std::vector<LayerSummary>& layers, const std::string& name) {
  const auto found = std::find_if(layers.begin(), layers.end(),
                                  [&](const auto& layer) { return layer.name == name; });
  if (found == layers.end()) throw InternalError("no row " + name);
  return *found;
}

TEST(Summary, CountsResnet50AsTheLiterature) {
  const auto task = images(224, 1000);
  const auto total = total_of(summarize(*make_resnet({.depth = 50}, task, 1), task));
  EXPECT_EQ(total.parameters, 25557032);
  // torchvision's documentation: 4.09 billion multiply-adds.
  EXPECT_NEAR(static_cast<double>(total.flops) / 2e9, 4.09, 0.005);
}

TEST(Summary, CountsResnet20AsTheLiterature) {
  const auto task = images(32, 10);
  const auto layers = summarize(*make_resnet({.depth = 20, .shortcut = "pad"}, task, 1), task);
  // 3x3 convolutions of equal cost, except the first and the first of stages 2 and 3
  // (half).
  const int64_t first = 32 * 32 * 9 * 3 * 16;
  const int64_t other = 32 * 32 * 9 * 16 * 16;
  const int64_t products = first + (6 + 5 + 5) * other + 2 * (other / 2) + 64 * 10;
  EXPECT_EQ(total_of(layers).flops, 2 * products);
  // Often quoted as 41 million multiply-adds.
  EXPECT_NEAR(static_cast<double>(products) / 1e6, 41, 0.5);
}

TEST(Summary, TellsEveryLayer) {
  const auto task = images(32, 10);
  const auto layers = summarize(*make_resnet({.depth = 8}, task, 1), task);
  const auto& conv = find(layers, "layer2.0.conv1");
  EXPECT_EQ(conv.type, "conv2d 3x3");
  EXPECT_EQ(conv.output_sizes, (std::vector<int64_t>{1, 32, 16, 16}));
  EXPECT_EQ(conv.parameters, 16 * 32 * 9);
  EXPECT_EQ(conv.flops, 2 * 16 * 32 * 9 * 16 * 16);
  EXPECT_EQ(conv.activation_bytes, 4 * 32 * 16 * 16);
  // Batch norm saves the mean and the deviation of every channel. The output of ReLU is saved, not
  // that of batch norm.
  EXPECT_EQ(find(layers, "layer2.0.bn1").activation_bytes, 4 * 2 * 32);
  EXPECT_EQ(find(layers, "fc").activation_bytes, 0);
}

TEST(Summary, CountsAttention) {
  const int64_t tokens = 16, width = 32, vocabulary = 65;
  const Task task{.kind = Task::Kind::kText, .classes = vocabulary, .context = tokens};
  const auto model = make_gpt({.layers = 2, .width = width, .heads = 4}, task, 1);
  const auto layers = summarize(*model, task);
  const int64_t linear = 2 * tokens * 12 * width * width;
  const int64_t attention = 4 * tokens * tokens * width;
  const int64_t head = 2 * tokens * width * vocabulary;
  EXPECT_EQ(total_of(layers).flops, 2 * (linear + attention) + head);
  // The tied embedding is listed twice and counted once.
  EXPECT_EQ(find(layers, "transformer.wte").parameters, width * vocabulary);
  EXPECT_EQ(find(layers, "transformer.wpe").parameters, width * tokens);
  int64_t parameters = 0;
  for (const auto& parameter : model->parameters()) parameters += parameter.tensor.numel();
  EXPECT_EQ(total_of(layers).parameters, parameters);
}

TEST(Summary, CountsVit) {
  const auto task = images(224, 1000);
  const auto total = total_of(summarize(*make_vit({.patch = 16}, task, 1), task));
  // timm: vit_tiny_patch16_224 has 5.72 M parameters and 1.26 GMAC with attention (1.08 without).
  EXPECT_EQ(total.parameters, 5717416);
  EXPECT_NEAR(static_cast<double>(total.flops) / 2e9, 1.26, 0.01);
}

TEST(Summary, LeavesTheModelAsItWas) {
  const auto task = images(16, 10);
  const auto model = make_resnet({.depth = 8}, task, 1);
  model->set_training(false);
  const auto input = at::rand({2, 3, 16, 16});
  const auto before = model->forward(input);
  summarize(*model, task);
  EXPECT_FALSE(model->training());
  EXPECT_TRUE(model->forward(input).equal(before));
}

TEST(Summary, RendersTableAndJson) {
  const auto task = images(8, 10);
  const auto layers = summarize(*make_mlp({.hidden = {16}}, task, 1), task);
  const auto table = to_table(layers);
  EXPECT_NE(table.find("layers.0"), std::string::npos);
  EXPECT_NE(table.find("3,258"), std::string::npos) << table;
  size_t width = 0;
  for (size_t begin = 0; begin < table.size();) {
    const size_t end = table.find('\n', begin);
    if (width == 0) width = end - begin;
    EXPECT_EQ(end - begin, width);
    begin = end + 1;
  }
  const auto json = nlohmann::json::parse(to_json(layers));
  EXPECT_EQ(json["layers"].size(), layers.size());
  EXPECT_EQ(json["total"]["parameters"], 192 * 16 + 16 + 160 + 10);
  EXPECT_EQ(json["layers"][0]["name"], "layers.0");
}

TEST(Summary, RefusesModelsWithoutValues) {
  const auto task = images(8, 10);
  InitialWeights weights;
  weights.sizes_only = true;
  EXPECT_THROW(summarize(*make_mlp({}, task, weights), task), UsageError);
}

}  // namespace
}  // namespace gallop::model
