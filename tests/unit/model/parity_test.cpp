// Against the models of torchvision, timm and transformers: tests/parity/make_models.py made the
// fixture, in float64. What is compared, in training and in evaluation:
//  - the loss;
//  - logits, each parameter's gradient, all gradients as one vector and, in training, each buffer
//  of
//    batch norm after the step: the norm of the difference over the norm of the fixture's tensor.
//    The fixture holds products with four vectors of random signs; the root mean square of the
//    differences of such products estimates the norm of the difference of the tensors themselves.
// In float64 that shows that the formulas are the same, in float32 how well they are computed.
#include <algorithm>
#include <cmath>
#include <fstream>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gallop/config/resolve.h"
#include "gallop/model/model.h"
#include "unit/fixtures.h"
#include "unit/model/digest.h"

namespace gallop::model {
namespace {

using Json = nlohmann::json;

// Largest relative differences.
struct Tolerances {
  double values;    // Loss, logits and buffers.
  double gradient;  // One parameter's.
  double all_gradients;
};

Tolerances double_precision(const std::string& name) {
  // GPT-NeoX computes the angles of rotary positions in float32, whatever its own type.
  return name.starts_with("gpt-rotary") ? Tolerances{1e-6, 1e-6, 1e-6}
                                        : Tolerances{1e-9, 1e-9, 1e-9};
}

Tolerances single_precision(const std::string& name, bool training) {
  if (!name.starts_with("resnet")) return {1e-5, 5e-5, 1e-5};
  // Rounding moves some inputs of ReLU across 0, where the gradient jumps. In training, each such
  // pixel changes batch norm's statistics and thereby all other pixels.
  return training ? Tolerances{1e-4, 0.3, 0.1} : Tolerances{1e-5, 0.03, 0.01};
}

const Json& cases() {
  static const Json list = Json::parse(std::ifstream(fixtures() / "models.json"));
  return list;
}

Task task_of(const Json& json) {
  if (json["kind"] == "text") {
    return {.kind = Task::Kind::kText, .classes = json["classes"], .context = json["context"]};
  }
  return {.kind = Task::Kind::kImages,
          .channels = json["channels"],
          .height = json["height"],
          .width = json["width"],
          .classes = json["classes"]};
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

void load(Model& model, at::ScalarType type) {
  for (const auto& [name, tensor] : model.parameters()) {
    tensor.set_data(tensor_of(parity::weight(name, tensor.sizes().vec()), tensor.sizes(), type));
  }
  for (const auto& [name, tensor] : model.buffers()) {
    if (!tensor.is_floating_point()) continue;
    tensor.set_data(tensor_of(parity::weight(name, tensor.sizes().vec()), tensor.sizes(), type));
  }
}

void compare(const Json& json, bool training, at::ScalarType type, const Tolerances& tolerances) {
  const auto model = build(json);
  load(*model, type);
  model->set_training(training);
  const auto task = task_of(json["task"]);
  const int64_t batch = json["task"]["batch"];
  const bool is_text = task.kind == Task::Kind::kText;
  const int64_t labels = is_text ? batch * task.context : batch;
  const std::vector<int64_t> image_sizes{batch, task.channels, task.height, task.width};
  const auto input =
      is_text
          ? integers("input", labels, task.classes).view({batch, -1})
          : tensor_of(parity::uniform("input", labels * task.channels * task.height * task.width),
                      image_sizes, type);

  const auto logits = model->forward(input).flatten(0, -2);
  const auto loss = at::cross_entropy_loss(logits, integers("labels", labels, task.classes));
  loss.backward();

  const auto& stored = json[training ? "train" : "eval"];
  const double expected_loss = stored["loss"];
  EXPECT_NEAR(loss.item<double>(), expected_loss, tolerances.values * expected_loss);
  EXPECT_LT(distance("logits", logits, stored["logits"]).relative(), tolerances.values);
  Distance all;
  const auto parameters = model->parameters();
  EXPECT_EQ(parameters.size(), stored["gradients"].size());
  for (const auto& [name, tensor] : parameters) {
    ASSERT_TRUE(stored["gradients"].contains(name)) << name;
    const auto one = distance(name, tensor.grad(), stored["gradients"][name]);
    EXPECT_LT(one.relative(), tolerances.gradient) << name;
    all += one;
  }
  EXPECT_LT(all.relative(), tolerances.all_gradients);
  if (!training) return;
  EXPECT_EQ(model->buffers().size(), stored["buffers"].size());
  for (const auto& [name, tensor] : model->buffers()) {
    ASSERT_TRUE(stored["buffers"].contains(name)) << name;
    EXPECT_LT(distance(name, tensor, stored["buffers"][name]).relative(), tolerances.values)
        << name;
  }
}

class Parity : public testing::TestWithParam<int> {
 protected:
  // With models this small, threads mostly wait for each other, which is slow on a busy
  // machine.
  void SetUp() override { at::set_num_threads(1); }
  void TearDown() override { at::set_num_threads(threads_); }
  const Json& fixture() const { return cases()[static_cast<size_t>(GetParam())]; }

 private:
  int threads_ = at::get_num_threads();
};

TEST_P(Parity, InDoublePrecision) {
  for (const bool training : {true, false}) {
    compare(fixture(), training, at::kDouble, double_precision(fixture()["name"]));
  }
}

TEST_P(Parity, InSinglePrecision) {
  for (const bool training : {true, false}) {
    compare(fixture(), training, at::kFloat, single_precision(fixture()["name"], training));
  }
}

std::string name_of(const testing::TestParamInfo<int>& info) {
  std::string name = cases()[static_cast<size_t>(info.param)]["name"];
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Models, Parity, testing::Range(0, static_cast<int>(cases().size())),
                         name_of);

}  // namespace
}  // namespace gallop::model
