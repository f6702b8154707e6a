// Models of layers that read texts: causality, padding, and pairs.
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/allclose.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>

#include "unit/model/built_layers.h"

namespace gallop::model {
namespace {

// Text classification.
const Task kTexts{.kind = Task::Kind::kText,
                  .classes = 5,
                  .context = 12,
                  .vocabulary = 17,
                  .per_element = false,
                  .bidirectional = true,
                  .padded = true};

TEST(LayersOfTexts, NeverSeesTheTokensThatItPredicts) {
  const auto model = build(
      "[{embedding: 8}, position-embedding, {repeat: {times: 2, layers:"
      " [{residual: [layer-norm, {attention: 2}]}, {residual: [rms-norm, {conv: {channels: "
      "8}}]}]}},"
      " {lstm: 8}, {gru: 8}, linear]",
      kText);
  model->set_training(false);
  const at::Tensor tokens = at::randint(17, {2, 9}, at::kLong);
  at::Tensor changed = tokens.clone();
  changed.select(1, 6).add_(1).remainder_(17);
  const at::Tensor before = model->forward(tokens), after = model->forward(changed);
  EXPECT_TRUE(at::equal(before.narrow(1, 0, 6), after.narrow(1, 0, 6)));
  EXPECT_FALSE(at::equal(before.select(1, 6), after.select(1, 6)));
  EXPECT_EQ(model->forward(tokens.narrow(1, 0, 4)).sizes(), (std::vector<int64_t>{2, 4, 17}));
}

TEST(LayersOfTexts, IgnoresPaddingBehindShortTexts) {
  for (const std::string layers :
       {"[{embedding: 6}, global-avg-pool, linear]",
        "[{embedding: 6}, {gru: {hidden: 8, layers: 2, bidirectional: true}}, global-avg-pool, "
        "linear]",
        "[{embedding: 6}, {lstm: {hidden: 8, bidirectional: true}}, global-avg-pool, linear]",
        "[{embedding: 6}, {conv: {channels: 8, kernel: 3}}, relu, {conv: {channels: 8, kernel: 5}},"
        " global-avg-pool, linear]",
        "[{embedding: 8}, position-embedding, {residual: [layer-norm, {attention: {heads: 2}}]},"
        " layer-norm, global-avg-pool, linear]",
        "[{embedding: 8}, {attention: {heads: 2, causal: true, rotary: true}}, global-avg-pool, "
        "linear]"}) {
    const auto model = build(layers, kTexts);
    const at::Tensor text = at::randint(17, {1, 4}, at::kLong);
    const at::Tensor longer = at::randint(17, {1, 11}, at::kLong);
    const at::Tensor batch = at::cat({at::constant_pad_nd(text, {0, 7}, -1), longer});
    const at::Tensor together = model->forward(batch), direction = at::randn({1, 5});
    EXPECT_TRUE(at::allclose(together[0], model->forward(text)[0], 1e-5, 1e-6)) << layers;
    EXPECT_TRUE(at::allclose(together[1], model->forward(longer)[0], 1e-5, 1e-6)) << layers;
    together.slice(0, 0, 1).mul(direction).sum().backward();
    std::vector<at::Tensor> padded;
    for (at::Tensor& parameter : parameters_of(*model)) {
      padded.push_back(parameter.grad().clone());
      parameter.mutable_grad().zero_();
    }
    model->forward(text).mul(direction).sum().backward();
    const auto parameters = parameters_of(*model);
    for (size_t i = 0; i < padded.size(); ++i) {
      EXPECT_TRUE(at::allclose(padded[i], parameters[i].grad(), 1e-4, 1e-6)) << layers << i;
    }
  }
}

TEST(LayersOfTexts, EmbedsEachTextOfAPair) {
  Task pairs = kTexts;
  pairs.classes = 0;
  pairs.views = 2;
  for (const std::string layers :
       {"[{embedding: 6}, {lstm: {hidden: 5}}, global-avg-pool, {linear: 7}]",
        "[{embedding: 6}, global-avg-pool, {linear: {features: 7, bias: false}}]"}) {
    const auto model = build(layers, pairs);
    const at::Tensor one = at::randint(17, {1, 4}, at::kLong);
    const at::Tensor other = at::randint(17, {1, 9}, at::kLong);
    const at::Tensor batch = at::stack({at::constant_pad_nd(one, {0, 5}, -1), other}, 2);
    const at::Tensor both = model->forward(batch);
    EXPECT_EQ(both.sizes(), (std::vector<int64_t>{1, 2, 7}));
    EXPECT_TRUE(at::allclose(model->forward_to_head(batch).logits(), both, 1e-5, 1e-6));
    const at::Tensor alone = model->forward(one.unsqueeze(2));
    EXPECT_EQ(alone.sizes(), (std::vector<int64_t>{1, 1, 7}));
    EXPECT_TRUE(at::allclose(both.select(1, 0), alone.select(1, 0), 1e-5, 1e-6));
    EXPECT_TRUE(at::allclose(both.select(1, 1), model->forward(other.unsqueeze(2))[0], 1e-5, 1e-6));
  }
  for (const auto& [layers, wanted] : std::vector<std::pair<std::string, std::string>>{
           {"[{embedding: 6}, global-avg-pool, linear]", "needs features"},
           {"[{embedding: 6}, {conv: {kernel: 3}}, global-avg-pool]", "needs channels"},
           {"[{embedding: 6}, {linear: 7}]", "a vector, the embedding of a text"}}) {
    const std::string wrong = mistake(layers, pairs);
    EXPECT_NE(wrong.find(wanted), std::string::npos) << wrong;
  }
  EXPECT_EQ(mistake("[{embedding: 6}, global-avg-pool]", pairs), "");
}

TEST(LayersOfTexts, AveragesTokensAlone) {
  const auto model = build("[{embedding: 5}, global-avg-pool]", kTexts);
  const at::Tensor table = parameters_of(*model)[0];
  const at::Tensor tokens = at::full({1, 6}, -1, at::kLong);
  tokens[0][0] = 3;
  tokens[0][1] = 8;
  EXPECT_TRUE(at::allclose(model->forward(tokens)[0], (table[3] + table[8]) / 2));
}

TEST(LayersOfTexts, RecomputesPaddedBlocksWithTheMaskOfTheirBatch) {
  const auto model = build(
      "[{embedding: 6}, {sequential: [{gru: {hidden: 5, bidirectional: true}},"
      " global-avg-pool]}, linear]",
      kTexts);
  const at::Tensor batch = at::constant_pad_nd(at::randint(17, {3, 4}, at::kLong), {0, 3}, -1);
  const auto gradients = [&] {
    const at::Tensor y = model->forward(batch);
    // Another batch in between, as in an evaluation.
    model->forward(at::randint(17, {2, 9}, at::kLong));
    y.square().sum().backward();
    std::vector<at::Tensor> all;
    for (at::Tensor& parameter : parameters_of(*model)) {
      all.push_back(parameter.grad().clone());
      parameter.mutable_grad().zero_();
    }
    return all;
  };
  const auto kept = gradients();
  model->recompute({true});
  const auto again = gradients();
  for (size_t i = 0; i < kept.size(); ++i) EXPECT_TRUE(kept[i].equal(again[i])) << i;
}

TEST(LayersOfTexts, RejectsLayersThatWouldMixPaddingIn) {
  for (const auto& [layers, hint] : std::vector<std::pair<std::string, std::string>>{
           {"[{embedding: 6}, batch-norm, global-avg-pool, linear]", "use layer-norm"},
           {"[{embedding: 6}, flatten, linear]", "use global-avg-pool"},
           {"[{embedding: 6}, max-pool, global-avg-pool, linear]", "use global-avg-pool"},
           {"[{embedding: 6}, {conv: {channels: 8, stride: 2}}, global-avg-pool, linear]",
            "stride 1"},
           {"[{embedding: 6}, {conv-transpose: {channels: 8, kernel: 2, stride: 2}},"
            " global-avg-pool, linear]",
            "use conv"}}) {
    const std::string wrong = mistake(layers, kTexts);
    EXPECT_NE(wrong.find("padding behind short texts"), std::string::npos) << wrong;
    EXPECT_NE(wrong.find(hint), std::string::npos) << wrong;
  }
  EXPECT_EQ(mistake("[{embedding: 6}, global-avg-pool, batch-norm, linear]", kTexts), "");
}

TEST(LayersOfTexts, MixesTokensOfTextsWithoutPadding) {
  Task texts = kTexts;
  texts.padded = false;
  for (const std::string layers :
       {"[{embedding: 6}, batch-norm, global-avg-pool, linear]",
        "[{embedding: 6}, flatten, linear]",
        "[{embedding: 6}, {conv: {channels: 8, stride: 2}}, flatten, linear]"}) {
    const auto model = build(layers, texts);
    const at::Tensor tokens = at::randint(17, {3, 12}, at::kLong);
    EXPECT_EQ(model->forward(tokens).sizes(), (std::vector<int64_t>{3, 5})) << layers;
  }
}

}  // namespace
}  // namespace gallop::model
