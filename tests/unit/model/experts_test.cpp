// Mixtures of experts against the block of transformers' Mixtral and against plain loops:
// tests/parity/make_experts.py made the fixture.
#include <fstream>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gallop/base/error.h"
#include "gallop/config/resolve.h"
#include "gallop/kernel/grouped_linear.h"
#include "gallop/model/gpt.h"
#include "gallop/model/summary.h"
#include "unit/base/error_of.h"
#include "unit/fixtures.h"
#include "unit/model/cpu_autocast.h"
#include "unit/model/digest.h"

namespace gallop::model {
namespace {

using Json = nlohmann::json;

Task task_of(const Json& json) {
  return {.kind = Task::Kind::kText, .classes = json["classes"], .context = json["context"]};
}

std::unique_ptr<Model> build(const Json& json) {
  const auto registry = built_in_models();
  config::Component component(registry, json["model"]);
  config::Problems problems;
  config::read_fields(
      config::parse_yaml(json["options"], "fixture"),
      [&](config::Visitor& visitor) { component.visit_fields(visitor); }, problems);
  problems.throw_if_any();
  return registry.build(component, task_of(json["task"]), 1);
}

std::vector<at::Tensor> buffers_named(const Model& model, const std::string& end) {
  std::vector<at::Tensor> found;
  for (const auto& [name, tensor] : model.buffers()) {
    if (name.ends_with(end)) found.push_back(tensor);
  }
  return found;
}

void load(Model& model, const Json& json, at::ScalarType type) {
  for (const auto& [name, tensor] : model.parameters()) {
    tensor.set_data(tensor_of(parity::weight(name, tensor.sizes().vec()), tensor.sizes(), type));
  }
  const auto biases = buffers_named(model, "expert_bias");
  for (size_t i = 0; i < biases.size(); ++i) {
    biases[i].copy_(at::tensor(json["bias"][i].get<std::vector<double>>()));
  }
}

void compare(const Json& json, bool training, at::ScalarType type, double most) {
  const auto model = build(json);
  load(*model, json, type);
  model->set_training(training);
  const Task task = task_of(json["task"]);
  const int64_t batch = json["task"]["batch"], tokens = batch * task.context;
  const Output output =
      model->forward_to_head(integers("input", tokens, task.classes).view({batch, -1}));
  const at::Tensor logits = output.logits().flatten(0, -2);
  at::Tensor loss = at::cross_entropy_loss(logits, integers("labels", tokens, task.classes));
  EXPECT_EQ(output.auxiliary_loss.defined(), training && model->has_auxiliary_loss());
  if (output.auxiliary_loss.defined()) {
    loss = loss + output.auxiliary_loss / static_cast<double>(tokens);
  }
  loss.backward();

  const auto& stored = json[training ? "train" : "eval"];
  EXPECT_NEAR(loss.item<double>(), stored["loss"].get<double>(), most);
  EXPECT_LT(distance("logits", logits, stored["logits"]).relative(), most);
  EXPECT_EQ(model->parameters().size(), stored["gradients"].size());
  for (const auto& [name, tensor] : model->parameters()) {
    ASSERT_TRUE(stored["gradients"].contains(name)) << name;
    EXPECT_LT(distance(name, tensor.grad(), stored["gradients"][name]).relative(), most) << name;
  }
  if (!training) return;

  std::vector<double> counts;
  for (const auto& of_layer : json["statistics"]) {
    counts.insert(counts.end(), of_layer.begin(), of_layer.end());
  }
  ASSERT_EQ(model->statistics_size(), static_cast<int64_t>(counts.size()));
  EXPECT_TRUE(at::equal(output.step_statistics, at::tensor(counts, at::kDouble)));
  model->update_statistics(output.step_statistics);
  model->update_statistics(at::zeros_like(output.step_statistics));
  const auto totals = buffers_named(*model, "tokens_per_expert");
  for (size_t i = 0; i < totals.size(); ++i) {
    std::vector<double> sent = json["statistics"][i];
    EXPECT_EQ(buffers_named(*model, "dropped_tokens")[i].item<double>(), sent.back());
    sent.pop_back();
    EXPECT_TRUE(at::equal(totals[i].to(at::kDouble), at::tensor(sent, at::kDouble)));
  }
  const auto biases = buffers_named(*model, "expert_bias");
  for (size_t i = 0; i < biases.size(); ++i) {
    const at::Tensor after =
        at::tensor(json["bias_after"][i].get<std::vector<double>>()).to(at::kFloat);
    EXPECT_TRUE(at::allclose(biases[i], after, 0, 1e-7));
  }
}

const Json& cases() {
  static const Json list = Json::parse(std::ifstream(fixtures() / "experts.json"));
  return list;
}

std::string name_of(size_t number) {
  std::string name = cases()[number]["name"];
  std::erase(name, '-');
  return name;
}

class Experts : public testing::TestWithParam<size_t> {};

TEST_P(Experts, AreThoseOfTheFixture) {
  const Json& json = cases()[GetParam()];
  // Mixtral computes the router's probabilities in float32, whatever its own type.
  const double most = json["name"] == "mixtral" ? 2e-6 : 1e-9;
  for (const bool training : {true, false}) {
    SCOPED_TRACE(training ? "training" : "evaluation");
    compare(json, training, at::kDouble, most);
    compare(json, training, at::kFloat, 5e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Options, Experts, testing::Range(size_t{0}, cases().size()),
                         [](const auto& tested) { return name_of(tested.param); });

const GptConfig kSmall{
    .layers = 2, .width = 32, .heads = 4, .activation = "swiglu", .experts = {.num_experts = 8}};
const Task kText{.kind = Task::Kind::kText, .classes = 17, .context = 16};

TEST(ExpertsModel, ComputesExpertsInBf16AndTheRouterInFp32) {
  const auto model = make_gpt(kSmall, kText, 1);
  const at::Tensor tokens = integers("tokens", 3 * 16, 17).view({3, 16});
  const Output wide = model->forward_to_head(tokens);
  const CpuAutocast autocast(at::kBFloat16);
  const Output narrow = model->forward_to_head(tokens);
  EXPECT_EQ(narrow.auxiliary_loss.scalar_type(), at::kFloat);
  EXPECT_NEAR(narrow.auxiliary_loss.item<double>() / wide.auxiliary_loss.item<double>(), 1, 0.01);
  (narrow.logits().to(at::kFloat).square().sum() + narrow.auxiliary_loss).backward();
  for (const auto& [name, tensor] : model->parameters()) {
    ASSERT_TRUE(tensor.grad().defined()) << name;
    EXPECT_EQ(tensor.grad().scalar_type(), at::kFloat) << name;
  }
}

TEST(ExpertsModel, CountsActiveParameters) {
  const auto model = make_gpt(kSmall, kText, 1);
  const LayerSummary total = total_of(summarize(*model, kText));
  int64_t all = 0, of_experts = 0;
  for (const auto& [name, tensor] : model->parameters()) {
    all += tensor.numel();
    if (name.find(".experts.") != std::string::npos) of_experts += tensor.numel();
  }
  EXPECT_EQ(total.parameters, all);
  EXPECT_EQ(total.active_parameters(), all - of_experts * 6 / 8);
  // Two experts of the same width take the FLOPs of a dense layer twice.
  GptConfig dense = kSmall;
  dense.experts = {};
  const LayerSummary of_dense = total_of(summarize(*make_gpt(dense, kText, 1), kText));
  const int64_t expert = 16 * 2 * 32 * 3 * 128, router = 16 * 2 * 32 * 8;
  EXPECT_EQ(total.flops - of_dense.flops, 2 * (expert + router));
}

TEST(ExpertsModel, RejectsOptionsThatContradictEachOther) {
  GptConfig config = kSmall;
  config.experts.num_experts = 1;
  EXPECT_THROW(make_gpt(config, kText, 1), UsageError);
  config.experts = {.num_experts = 4, .top_k = 5};
  EXPECT_THROW(make_gpt(config, kText, 1), UsageError);
  config.experts = {.num_experts = 0, .top_k = 4};
  EXPECT_EQ(error_of([&] { make_gpt(config, kText, 1); }),
            "gpt: model.top_k has no effect without experts: set model.num_experts, or omit it");
}

TEST(ExpertsModel, TellsWhatHasBeenDropped) {
  const auto model = make_gpt(kSmall, kText, 1);
  EXPECT_EQ(model->statistics_report(), "");
  std::vector<double> counts(18, 10);
  counts[3] = 30;
  counts[8] = counts[17] = 9;
  model->update_statistics(at::tensor(counts, at::kDouble));
  EXPECT_EQ(model->statistics_report(),
            "experts: the busiest one of a layer got 2.40 times the mean, 10.00 % of tokens' "
            "copies were dropped");
  EXPECT_EQ(model->statistics_report(), "");
}

TEST(GroupedLinear, ComputesTheRowsOfEachExpert) {
  for (const auto type : {at::kFloat, at::kDouble, at::kBFloat16}) {
    const at::Tensor x = at::rand({9, 4}).to(type), weight = at::rand({4, 3, 4}).to(type);
    const at::Tensor dy = at::rand({9, 3}).to(type);
    // The second has none, and rows 2, 6 and 8 belong to none.
    const at::Tensor ranges = at::tensor({0, 2, 3, 3, 3, 6, 7, 8}, at::kLong).view({4, 2});
    const std::vector<int64_t> expert = {0, 0, -1, 2, 2, 2, -1, 3, -1};
    const at::Tensor y = kernel::grouped_linear(x, weight, ranges);
    const at::Tensor dx = kernel::grouped_linear_dgrad(dy, weight, ranges);
    const at::Tensor dw = kernel::grouped_linear_wgrad(dy, x, ranges);
    at::Tensor wanted = at::zeros({4, 3, 4}, at::kDouble);
    const auto is_close = [](const at::Tensor& a, const at::Tensor& b) {
      return at::allclose(a.to(at::kDouble), b.to(at::kDouble), 1e-2, 1e-6);
    };
    for (int64_t row = 0; row < 9; ++row) {
      const int64_t one = expert[static_cast<size_t>(row)];
      if (one < 0) {
        EXPECT_EQ(y[row].abs().sum().item<double>() + dx[row].abs().sum().item<double>(), 0);
        continue;
      }
      EXPECT_TRUE(is_close(y[row], weight[one].mv(x[row]))) << row;
      EXPECT_TRUE(is_close(dx[row], weight[one].t().mv(dy[row]))) << row;
      wanted[one].add_(dy[row].to(at::kDouble).outer(x[row].to(at::kDouble)));
    }
    EXPECT_TRUE(is_close(dw, wanted));
  }
}

TEST(GroupedLinear, RejectsRangesOutsideOfTheRows) {
  const at::Tensor x = at::rand({4, 2}), weight = at::rand({2, 3, 2});
  const auto ranges = [](std::vector<int64_t> bounds) {
    return at::tensor(bounds, at::kLong).view({2, 2});
  };
  EXPECT_THROW(kernel::grouped_linear(x, weight, ranges({0, 2, 2, 5})), InternalError);
  EXPECT_THROW(kernel::grouped_linear(x, weight, ranges({2, 4, 0, 2})), InternalError);
  EXPECT_THROW(kernel::grouped_linear(x, weight, ranges({2, 1, 2, 4})), InternalError);
}

}  // namespace
}  // namespace gallop::model
