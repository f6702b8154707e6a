// Models for tables next to rtdl_num_embeddings and tabm, by tests/parity/make_tables.py.
#include <fstream>

#include <ATen/Functions.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/model/tabm.h"
#include "gallop/model/tabular_mlp.h"
#include "unit/fixtures.h"

namespace gallop::model {
namespace {

using Json = nlohmann::json;

const Json& networks() {
  static const Json json = [] {
    std::ifstream file(fixtures() / "tables.json");
    return Json::parse(file)["networks"];
  }();
  return json;
}

at::Tensor tensor_of(const Json& values) { return at::tensor(values.get<std::vector<float>>()); }

at::Tensor inputs() {
  std::vector<float> values;
  for (const auto& row : networks()["x"]) {
    for (const auto& value : row) values.push_back(value.get<float>());
  }
  return at::tensor(values).view({-1, 3});
}

void set(const Model& model, const std::string& name, const Json& parameters,
         const std::string& theirs) {
  const at::NoGradGuard no_grad;
  const NamedTensors own = model.parameters();
  const at::Tensor* const tensor = find_tensor(own, name);
  ASSERT_NE(tensor, nullptr) << name;
  const at::Tensor values = tensor_of(parameters.at(theirs).at("values"));
  ASSERT_EQ(tensor->numel(), values.numel()) << name;
  at::Tensor(*tensor).copy_(values.view(tensor->sizes()));
}

Task table_task() {
  Task task{.kind = Task::Kind::kNumbers, .classes = 2, .features = 3, .per_element = false};
  for (const auto& bins : networks()["bins"]) task.bins.push_back(bins.get<std::vector<double>>());
  return task;
}

// A network whose only layer passes the embedding on.
at::Tensor embed(const std::string& kind, const Json& parameters,
                 const std::vector<std::pair<std::string, std::string>>& names) {
  Task task = table_task();
  task.classes = 12;
  const auto model = make_tabular_mlp(
      {.input = {.number_embedding = kind, .embedding_width = 4, .frequencies = 5}, .hidden = {}},
      task, 1);
  for (const auto& [own, theirs] : names) set(*model, own, parameters, theirs);
  const at::NoGradGuard no_grad;
  const NamedTensors own = model->parameters();
  at::Tensor(*find_tensor(own, "layers.0.weight")).copy_(at::eye(12));
  at::Tensor(*find_tensor(own, "layers.0.bias")).zero_();
  return model->forward(inputs());
}

void expect_close(const at::Tensor& found, const Json& wanted) {
  const at::Tensor values = tensor_of(wanted);
  ASSERT_EQ(found.numel(), values.numel());
  EXPECT_LT(found.reshape(-1).sub(values).abs().max().item<double>(), 1e-5);
}

// The reference has the last bin of each number at the end, after the padding.
Json with_last_bins_moved(Json parameters) {
  Json& values = parameters["linear.weight"]["values"];
  const size_t bins = 3, width = 4;
  for (size_t i = 0; i < 3; ++i) {
    const size_t own = networks()["bins"][i].size() - 2;
    for (size_t j = 0; j < width; ++j) {
      values[(i * bins + own) * width + j] = values[(i * bins + bins - 1) * width + j];
    }
  }
  return parameters;
}

TEST(TabularInput, PiecewiseLinearEmbeddingsEqualTheReference) {
  const Json& piecewise = networks()["piecewise"];
  expect_close(embed("piecewise-linear", with_last_bins_moved(piecewise["parameters"]),
                     {{"input.numbers_weight", "linear0.weight"},
                      {"input.numbers_bias", "linear0.bias"},
                      {"input.numbers_values", "linear.weight"}}),
               piecewise["y"]);
}

TEST(TabularInput, PeriodicEmbeddingsEqualTheReference) {
  const Json& periodic = networks()["periodic"];
  expect_close(embed("periodic", periodic["parameters"],
                     {{"input.numbers_frequencies", "periodic.weight"},
                      {"input.numbers_values", "linear.weight"},
                      {"input.numbers_bias", "linear.bias"}}),
               periodic["y"]);
}

TEST(Tabm, EqualsTheReference) {
  for (const bool is_mini : {false, true}) {
    const Json& reference = networks()[is_mini ? "tabm-mini" : "tabm"];
    const Json& parameters = reference["parameters"];
    const auto model = make_tabm({.input = {.number_embedding = "none"},
                                  .members = 3,
                                  .adapters = is_mini ? "first" : "all",
                                  .layers = 2,
                                  .width = 6,
                                  .dropout = 0},
                                 table_task(), 1);
    for (const std::string layer : {"0", "1"}) {
      const std::string theirs = "backbone.blocks." + layer + ".0.";
      set(*model, "layers." + layer + ".weight", parameters, theirs + "weight");
      set(*model, "layers." + layer + ".bias", parameters, theirs + "bias");
      if (is_mini) continue;
      set(*model, "layers." + layer + ".r", parameters, theirs + "r");
      set(*model, "layers." + layer + ".s", parameters, theirs + "s");
    }
    if (is_mini) set(*model, "layers.0.r", parameters, "backbone.affine.weight");
    set(*model, "head_weight", parameters, "output.weight");
    set(*model, "head_bias", parameters, "output.bias");
    const at::NoGradGuard no_grad;
    const Output output = model->forward_to_head(inputs());
    EXPECT_EQ(output.members, 3);
    expect_close(output.x, reference["y"]);
    expect_close(model->forward(inputs()).softmax(-1), reference["probabilities"]);
  }
}

TEST(Tabm, PredictsTheMeanOfNumbersAndOfLabelProbabilities) {
  const at::NoGradGuard no_grad;
  Task task = table_task();
  task.outputs = Task::Outputs::kNumbers;
  auto model = make_tabm({.members = 4, .dropout = 0}, task, 1);
  const at::Tensor each = model->forward_to_head(inputs()).x;
  EXPECT_LT(model->forward(inputs()).sub(each.mean(1)).abs().max().item<double>(), 1e-6);
  task.outputs = Task::Outputs::kLabels;
  model = make_tabm({.members = 4, .dropout = 0}, task, 1);
  EXPECT_LT(
      model->forward(inputs()).sigmoid().sub(each.sigmoid().mean(1)).abs().max().item<double>(),
      1e-6);
}

TEST(TabularModels, EmbedCategoriesWithASizeThatGrowsWithTheirNumber) {
  Task task = table_task();
  task.categories = {3, 1000};
  const auto model = make_tabular_mlp({.hidden = {8}}, task, 1);
  const NamedTensors own = model->parameters();
  EXPECT_EQ(find_tensor(own, "input.categories_0")->sizes(), (std::vector<int64_t>{3, 3}));
  EXPECT_EQ(find_tensor(own, "input.categories_1")->sizes(), (std::vector<int64_t>{1000, 77}));
  const at::Tensor categories =
      at::tensor(std::vector<int64_t>{0, 1, 2, 999, 1, 5, 2, 0}).view({4, 2});
  const at::Tensor target = at::zeros({4}, at::kLong);
  const at::Tensor y =
      model->forward({{"input", inputs()}, {"target", target}, {"categories", categories}});
  EXPECT_EQ(y.sizes(), (std::vector<int64_t>{4, 2}));
  // The output of a row depends on its category.
  const at::Tensor others = categories.flip(0);
  EXPECT_FALSE(at::equal(
      y, model->forward({{"input", inputs()}, {"target", target}, {"categories", others}})));
}

TEST(TabularModels, RefuseOtherData) {
  const Task images{.channels = 3, .height = 8, .width = 8, .classes = 2};
  EXPECT_THROW(make_tabular_mlp({}, images, 1), UsageError);
  EXPECT_THROW(make_tabm({}, images, 1), UsageError);
}

}  // namespace
}  // namespace gallop::model
