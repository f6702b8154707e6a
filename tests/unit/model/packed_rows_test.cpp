// Rows of several texts have the outputs of each text alone.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/stack.h>
#include <gtest/gtest.h>

#include "gallop/config/resolve.h"
#include "gallop/model/frozen.h"
#include "gallop/model/gpt.h"
#include "gallop/model/layers_model.h"
#include "gallop/model/mlp.h"

namespace gallop::model {
namespace {

constexpr int64_t kContext = 40, kVocabulary = 11;

const Task kTexts{
    .kind = Task::Kind::kText, .classes = kVocabulary, .context = kContext, .padded = true};

struct Packed {
  std::vector<at::Tensor> texts;
  at::Tensor rows, position_ids;
};

// Two rows, the first of which is full.
Packed some_texts() {
  Packed packed;
  std::vector<at::Tensor> rows, ids;
  for (const std::vector<int64_t>& lengths : {std::vector<int64_t>{17, 1, 22}, {30, 3}}) {
    std::vector<at::Tensor> row, positions;
    int64_t left = kContext;
    for (const int64_t length : lengths) {
      packed.texts.push_back(at::randint(kVocabulary, {1, length}, at::kLong));
      row.push_back(packed.texts.back()[0]);
      positions.push_back(at::arange(length));
      left -= length;
    }
    row.push_back(at::full({left}, -1, at::kLong));
    positions.push_back(at::arange(left));
    rows.push_back(at::cat(row));
    ids.push_back(at::cat(positions));
  }
  packed.rows = at::stack(rows);
  packed.position_ids = at::stack(ids);
  return packed;
}

// The outputs of the texts, one behind the other.
at::Tensor of_texts(const at::Tensor& outputs, const Packed& packed) {
  const at::Tensor flat = outputs.flatten(0, 1);
  return flat.index_select(0, packed.rows.flatten().ge(0).nonzero().flatten());
}

at::Tensor run(Model& model, const Packed& packed) {
  return of_texts(
      model.forward(
          {{"input", packed.rows}, {"target", packed.rows}, {kPositionIds, packed.position_ids}}),
      packed);
}

at::Tensor one_by_one(Model& model, const Packed& packed) {
  std::vector<at::Tensor> outputs;
  for (const at::Tensor& text : packed.texts) outputs.push_back(model.forward(text)[0]);
  return at::cat(outputs);
}

class PackedGpt : public testing::TestWithParam<std::string> {};

void expect_texts_apart(Model& model, const Packed& packed, const std::string& name) {
  ASSERT_TRUE(model.takes_packed_rows()) << name;
  const auto gradients_of = [&](const at::Tensor& outputs) {
    for (const auto& [parameter, tensor] : model.parameters()) tensor.mutable_grad() = at::Tensor();
    outputs.square().sum().backward();
    std::vector<at::Tensor> all;
    for (const auto& [parameter, tensor] : model.parameters()) all.push_back(tensor.grad());
    return all;
  };
  const at::Tensor outputs = run(model, packed), wanted = one_by_one(model, packed);
  EXPECT_TRUE(at::allclose(outputs, wanted, 1e-5, 1e-6)) << name;
  const auto gradients = gradients_of(outputs), of_each = gradients_of(wanted);
  for (size_t i = 0; i < gradients.size(); ++i) {
    EXPECT_TRUE(at::allclose(gradients[i], of_each[i], 1e-4, 1e-4))
        << name << ", " << model.parameters()[i].name;
  }
  // What a backward pass has computed again leaves nothing behind.
  EXPECT_TRUE(at::allclose(one_by_one(model, packed), wanted)) << name;
}

TEST_P(PackedGpt, HasTheOutputsAndGradientsOfEachText) {
  at::manual_seed(5);
  const Packed packed = some_texts();
  // The kernel has neither odd nor very wide heads, which are left to LibTorch.
  const bool is_rotary = GetParam() == "rotary";
  const GptConfig by_kernel{.layers = 2, .width = 32, .heads = 2, .positions = GetParam()},
      by_library{.layers = 2,
                 .width = is_rotary ? 258 : 34,
                 .heads = is_rotary ? 1 : 2,
                 .positions = GetParam()};
  for (const GptConfig& config : {by_kernel, by_library}) {
    for (const bool recomputes : {false, true}) {
      const auto model = make_gpt(config, kTexts, 1);
      model->recompute({recomputes, recomputes});
      expect_texts_apart(*model, packed, "width " + std::to_string(config.width));
    }
  }
}

TEST_P(PackedGpt, DoesNotReadPadding) {
  const at::NoGradGuard no_grad;
  at::manual_seed(5);
  const Packed packed = some_texts();
  const auto model =
      make_gpt({.layers = 2, .width = 32, .heads = 2, .positions = GetParam()}, kTexts, 1);
  Packed other = packed;
  other.rows = packed.rows.masked_fill(packed.rows.lt(0), 3);
  EXPECT_TRUE(
      at::equal(run(*model, packed), of_texts(model->forward({{"input", other.rows},
                                                              {"target", other.rows},
                                                              {kPositionIds, other.position_ids}}),
                                              packed)));
  // Short texts that are padded instead.
  const at::Tensor padded = at::cat({packed.texts[4], at::full({1, 9}, -1, at::kLong)}, 1);
  EXPECT_TRUE(at::allclose(model->forward(padded).narrow(1, 0, 3), model->forward(packed.texts[4]),
                           1e-5, 1e-6));
}

INSTANTIATE_TEST_SUITE_P(Positions, PackedGpt, testing::Values("learned", "rotary"),
                         [](const auto& given) { return given.param; });

std::unique_ptr<Model> layers(const std::string& list, bool bidirectional) {
  static const ModelRegistry kModels = built_in_models();
  LayersConfig config(kModels);
  config::Problems problems;
  config::read_fields(
      config::parse_yaml("layers: " + list, "r.yaml"),
      [&config](config::Visitor& visitor) { visit(visitor, config); }, problems);
  EXPECT_TRUE(problems.empty());
  Task task = kTexts;
  task.bidirectional = bidirectional;
  return make_layers(config, task, 1);
}

TEST(PackedRows, OfLayersHaveTheOutputsAndGradientsOfEachText) {
  at::manual_seed(5);
  const Packed packed = some_texts();
  for (const bool bidirectional : {false, true}) {
    for (const char* const rotary : {"true", "false"}) {
      for (const bool recomputes : {false, true}) {
        const auto model = layers(
            std::string("[{embedding: {width: 8, std: 0.5}}, {position-embedding: {std: 0.5}}, "
                        "{residual: [layer-norm, {attention: {heads: 2, rotary: ") +
                rotary + "}}]}, {add: [identity, {linear: 8}]}, gelu, {dropout: 0}, linear]",
            bidirectional);
        model->recompute(std::vector<bool>(static_cast<size_t>(model->blocks()), recomputes));
        expect_texts_apart(*model, packed, std::string("rotary ") + rotary);
      }
    }
  }
}

TEST(PackedRows, AreForModelsThatKeepTextsApart) {
  EXPECT_FALSE(make_mlp({}, {.kind = Task::Kind::kNumbers, .classes = 2, .features = 3}, 1)
                   ->takes_packed_rows());
  EXPECT_TRUE(freeze(make_gpt({.layers = 1, .width = 8, .heads = 1}, kTexts, 1), {"*ln_f*"})
                  ->takes_packed_rows());
  for (const char* const mixing :
       {"{lstm: 8}", "{conv: 8}", "{residual: [{gru: 8}]}", "{concat: [identity, {conv: 8}]}"}) {
    EXPECT_FALSE(
        layers(std::string("[{embedding: 8}, ") + mixing + ", linear]", false)->takes_packed_rows())
        << mixing;
  }
}

}  // namespace
}  // namespace gallop::model
