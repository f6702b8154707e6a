// Exported programs against PyTorch: tests/parity/make_exported.py made the archives and their
// results.
#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/rand.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/function.h>
#include <torch/headeronly/version.h>

#include "gallop/base/error.h"
#include "gallop/model/exported/scalar_functions.h"
#include "unit/base/error_of.h"
#include "unit/model/exported_case.h"

namespace gallop::model::exported {
namespace {

class ExportedProgram : public testing::TestWithParam<std::string> {};

// Results are those of the machine that made the fixtures, whose kernels may round differently.
double tolerance_of(const std::string& name) {
  return name == "bf16" || name == "autocast" ? 0.05 : 2e-4;
}

void expect_outputs(const std::map<std::string, at::Tensor>& outputs, const Json& stored,
                    double tolerance) {
  for (const auto& [name, digest] : stored.items()) {
    ASSERT_TRUE(outputs.contains(name)) << name;
    EXPECT_LT(distance(name, outputs.at(name), digest).relative(), tolerance) << name;
  }
}

TEST_P(ExportedProgram, TrainsAsInPyTorch) {
  const Json json = read(folder() / (GetParam() + ".json"));
  const double tolerance = tolerance_of(GetParam());
  for (const Json& run : json["runs"]) {
    Trained trained(json, GetParam(), /*training=*/true);
    const Json& stored = run["train"];
    const auto outputs = trained.run(run["sizes"]);
    expect_outputs(outputs, stored["outputs"], tolerance);
    const at::Tensor loss = trained.loss(outputs);
    EXPECT_NEAR(loss.item<double>(), stored["loss"].get<double>(), tolerance);
    loss.backward();
    for (const auto& [name, digest] : stored["gradients"].items()) {
      const at::Tensor& gradient = trained.tensors.at(name).grad();
      if (digest.is_null() || !gradient.defined()) {
        EXPECT_TRUE(digest.is_null() || digest[0].get<double>() == 0) << name;
        continue;
      }
      EXPECT_LT(distance(name, gradient, digest).relative(), 10 * tolerance) << name;
    }
    for (const auto& [name, digest] : stored["buffers"].items()) {
      if (digest.is_null() || !trained.tensors.contains(name)) continue;
      EXPECT_LT(distance(name, trained.tensors.at(name), digest).relative(), tolerance) << name;
    }
    {
      const at::NoGradGuard no_grad;
      std::vector<at::Tensor> done;
      for (auto& [name, tensor] : trained.tensors) {
        const auto is_same = [&](const at::Tensor& other) { return other.is_same(tensor); };
        if (!tensor.grad().defined() || std::any_of(done.begin(), done.end(), is_same)) continue;
        tensor.sub_(tensor.grad(), json["learning_rate"].get<double>());
        done.push_back(tensor);
      }
    }
    const double step_loss = trained.loss(trained.run(run["sizes"])).item<double>();
    EXPECT_NEAR(step_loss, stored["step_loss"].get<double>(), 10 * tolerance);
  }
}

TEST_P(ExportedProgram, EvaluatesAsInPyTorch) {
  const Json json = read(folder() / (GetParam() + ".json"));
  const double tolerance = tolerance_of(GetParam());
  for (const Json& run : json["runs"]) {
    const Trained trained(json, GetParam(), /*training=*/false);
    const at::NoGradGuard no_grad;
    const auto outputs = trained.run(run["sizes"]);
    expect_outputs(outputs, run["eval"]["outputs"], tolerance);
    EXPECT_NEAR(trained.loss(outputs).item<double>(), run["eval"]["loss"].get<double>(), tolerance);
  }
}

INSTANTIATE_TEST_SUITE_P(Archives, ExportedProgram, testing::ValuesIn(names_in(folder())),
                         name_of_case);

// The number of blocks that can be computed again.
const std::map<std::string, size_t> kBlocks = {
    {"bert", 1},    {"clip", 2},         {"convnext", 3}, {"diffusion-unet", 2},
    {"dit", 1},     {"efficientnet", 3}, {"gpt2", 1},     {"llama", 1},
    {"mixtral", 1}, {"modes", 1},        {"qwen3", 1},    {"resnet", 2},
    {"swin", 2},    {"t5", 2},           {"vit", 2},      {"whisper", 2}};

// The calls of functional::recompute() that lead to a tensor.
size_t count_recomputed(const at::Tensor& tensor) {
  std::vector<torch::autograd::Node*> open{tensor.grad_fn().get()};
  std::set<torch::autograd::Node*> seen;
  size_t found = 0;
  while (!open.empty()) {
    torch::autograd::Node* const node = open.back();
    open.pop_back();
    if (!seen.insert(node).second) continue;
    found += node->name().find("RecomputeFunction") != std::string::npos ? 1 : 0;
    for (const auto& edge : node->next_edges()) {
      if (edge.is_valid()) open.push_back(edge.function.get());
    }
  }
  return found;
}

// With three consumers of one activation, gradients are added in another order.
bool adds_in_other_order(const std::string& name) { return name == "diffusion-unet"; }

TEST_P(ExportedProgram, ComputesBlocksAgain) {
  const Json json = read(folder() / (GetParam() + ".json"));
  const Json& run = json["runs"][1];
  Trained plain(json, GetParam(), /*training=*/true), again(json, GetParam(), /*training=*/true);
  const size_t blocks = again.interpreter().blocks();
  const auto known = kBlocks.find(GetParam());
  EXPECT_EQ(blocks, known == kBlocks.end() ? 0 : known->second);
  again.interpreter().recompute(std::vector<bool>(blocks, true));
  const at::Tensor expected = plain.loss(plain.run(run["sizes"]));
  const at::Tensor actual = again.loss(again.run(run["sizes"]));
  EXPECT_TRUE(actual.equal(expected)) << actual << expected;
  EXPECT_EQ(count_recomputed(expected), 0U);
  EXPECT_EQ(count_recomputed(actual), blocks);
  expected.backward();
  actual.backward();
  for (const auto& [name, tensor] : plain.tensors) {
    const at::Tensor& other = again.tensors.at(name);
    EXPECT_TRUE(other.equal(tensor)) << name;
    ASSERT_EQ(other.grad().defined(), tensor.grad().defined()) << name;
    if (!tensor.grad().defined()) continue;
    if (adds_in_other_order(GetParam())) {
      EXPECT_TRUE(at::allclose(other.grad(), tensor.grad(), 1e-5, 1e-6)) << name;
    } else {
      EXPECT_TRUE(other.grad().equal(tensor.grad())) << name;
    }
  }
}

std::string rejected(const std::string& name) {
  return (folder() / "rejected" / (name + ".pt2")).string();
}

TEST(ExportedProgram, RejectsOperatorsOfPython) {
  const std::string file = rejected("custom-operator");
  const Program program = Archive(file).program("model");
  const std::string error = error_of([&] { Interpreter(program.graph, {}, file); });
  EXPECT_NE(error.find("(fixture::scale at "), std::string::npos) << error;
  EXPECT_NE(error.find("an operator that LibTorch does not have"), std::string::npos) << error;
}

TEST(ExportedProgram, RejectsOperatorsOfNewerVersions) {
  const auto error_with = [](const std::string& function, const std::string& overload) {
    Program program = Archive((folder() / "mlp.pt2").string()).program("model");
    Node& node = program.graph.nodes.front();
    node.function = function;
    node.overload = overload;
    return error_of([&] { Interpreter(program.graph, {}, "mlp.pt2"); });
  };
  const std::string lacks = "calls an operator that LibTorch " TORCH_VERSION " does not have: ";
  const std::string without = lacks + "write the model without it";
  const std::string unknown = error_with("aten::of_next_year", "");
  EXPECT_NE(unknown.find("(aten::of_next_year"), std::string::npos) << unknown;
  EXPECT_TRUE(unknown.ends_with(without)) << unknown;
  // Those that functions of torch use within may be new, where the functions are not.
  const std::string within = error_with("aten::_of_next_year", "");
  EXPECT_TRUE(within.ends_with(without + "; if torch " TORCH_VERSION
                                         " has the function in this line, it is enough to export "
                                         "with that version"))
      << within;
  const std::string overload = error_with("aten::linear", "of_next_year");
  EXPECT_TRUE(overload.ends_with(lacks + "export the model with torch " TORCH_VERSION)) << overload;
}

TEST(ExportedProgram, FindsWhatHasNoKnownEvaluation) {
  const Program program = Archive(rejected("training-alone")).program("model");
  const EvaluationProgram switched = switch_to_evaluation(program);
  ASSERT_EQ(switched.unknown.size(), 1U);
  EXPECT_NE(switched.unknown.front().find("aten::bernoulli_"), std::string::npos)
      << switched.unknown.front();
}

TEST(ExportedProgram, NamesTheNodeOfAnErrorAndRestoresGradMode) {
  const std::string file = (folder() / "no-grad.pt2").string();
  Archive archive(file);
  const Program program = archive.program("model");
  const Interpreter interpreter(program.graph, {}, file);
  std::vector<c10::IValue> wrong(program.inputs.size(), at::zeros({3, 1}));
  std::string error;
  try {
    interpreter.run(wrong);
  } catch (const c10::Error& thrown) {
    error = thrown.what_without_backtrace();
  }
  EXPECT_NE(error.find("node 'linear_2' (aten::linear at "), std::string::npos) << error;
  EXPECT_NE(error.find("no-grad.pt2"), std::string::npos) << error;
  EXPECT_TRUE(c10::GradMode::is_enabled());
}

// A program of attention with a mask, of bools, that `make_mask` adds from the sequence "q" and its
// length "length".
Graph attention_with_mask(const std::vector<Node>& make_mask) {
  const auto tensor = [](const char* name) { return Argument(TensorName{name}); };
  Graph graph;
  graph.inputs = {tensor("q")};
  graph.nodes = {{.name = "length",
                  .function = "aten::sym_size",
                  .overload = "int",
                  .inputs = {{"self", tensor("q")}, {"dim", int64_t{2}}},
                  .outputs = {ScalarName{"length"}}}};
  graph.nodes.insert(graph.nodes.end(), make_mask.begin(), make_mask.end());
  graph.nodes.push_back({.name = "y",
                         .function = "aten::scaled_dot_product_attention",
                         .inputs = {{"query", tensor("q")},
                                    {"key", tensor("q")},
                                    {"value", tensor("q")},
                                    {"attn_mask", tensor("mask")}},
                         .outputs = {tensor("y")}});
  graph.outputs = {tensor("y")};
  return graph;
}

std::vector<Node> causal_mask() {
  const auto tensor = [](const char* name) { return Argument(TensorName{name}); };
  return {{.name = "places",
           .function = "aten::arange",
           .inputs = {{"end", ScalarName{"length"}}},
           .outputs = {tensor("places")}},
          {.name = "queries",
           .function = "aten::unsqueeze",
           .inputs = {{"self", tensor("places")}, {"dim", int64_t{1}}},
           .outputs = {tensor("queries")}},
          {.name = "mask",
           .function = "aten::le",
           .overload = "Tensor",
           .inputs = {{"self", tensor("places")}, {"other", tensor("queries")}},
           .outputs = {tensor("mask")}}};
}

// A mask of one query that hides the keys in front of which the first sequence has no positive
// number.
std::vector<Node> mask_of_values() {
  const auto tensor = [](const char* name) { return Argument(TensorName{name}); };
  return {{.name = "first",
           .function = "aten::select",
           .overload = "int",
           .inputs = {{"self", tensor("q")}, {"dim", int64_t{3}}, {"index", int64_t{0}}},
           .outputs = {tensor("first")}},
          {.name = "visible",
           .function = "aten::gt",
           .overload = "Scalar",
           .inputs = {{"self", tensor("first")}, {"other", double{0}}},
           .outputs = {tensor("visible")}},
          {.name = "mask",
           .function = "aten::unsqueeze",
           .inputs = {{"self", tensor("visible")}, {"dim", int64_t{2}}},
           .outputs = {tensor("mask")}}};
}

// The calls of attention on this thread: whether each has a mask, and whether it is causal.
class AttentionCalls {
 public:
  AttentionCalls() {
    calls().clear();
    handle_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback([](const at::RecordFunction& call) {
          if (std::string_view(call.name()) == "aten::scaled_dot_product_attention") {
            const auto inputs = call.inputs();
            calls().emplace_back(!inputs[3].isNone(), inputs[5].toBool());
          }
          return std::unique_ptr<at::ObserverContext>();
        }).needsInputs(true));
  }
  ~AttentionCalls() { at::removeCallback(handle_); }
  AttentionCalls(const AttentionCalls&) = delete;
  AttentionCalls& operator=(const AttentionCalls&) = delete;

  static std::vector<std::pair<bool, bool>>& calls() {
    static std::vector<std::pair<bool, bool>> list;
    return list;
  }

 private:
  at::CallbackHandle handle_;
};

TEST(FixedMasks, OfCausalAttentionBecomeItsFlag) {
  const Graph graph = attention_with_mask(causal_mask());
  const Interpreter interpreter(graph, {.simplifies_masks = true}, "net.pt2");
  const Interpreter plain(graph, {}, "net.pt2");
  for (const int64_t length : {5, 9, 5}) {
    const at::Tensor q = at::randn({2, 3, length, 4});
    const at::Tensor wanted = plain.run({q})[0].toTensor();
    const AttentionCalls seen;
    const at::Tensor y = interpreter.run({q})[0].toTensor();
    EXPECT_TRUE(at::allclose(y, wanted, 1e-5, 1e-6));
    EXPECT_EQ(AttentionCalls::calls(), (std::vector{std::pair(false, true)}));
  }
}

TEST(FixedMasks, AreNotThoseOfValues) {
  const Graph graph = attention_with_mask(mask_of_values());
  const Interpreter interpreter(graph, {.simplifies_masks = true}, "net.pt2");
  // All keys are visible at first.
  at::Tensor q = at::rand({1, 1, 6, 4}) + 0.1;
  for (int i = 0; i < 2; ++i) {
    const AttentionCalls seen;
    const at::Tensor y = interpreter.run({q})[0].toTensor();
    EXPECT_EQ(AttentionCalls::calls(), (std::vector{std::pair(true, false)}));
    const at::Tensor mask = q.select(3, 0).gt(0).unsqueeze(2);
    EXPECT_TRUE(at::allclose(y, at::scaled_dot_product_attention(q, q, q, mask), 1e-5, 1e-6));
    q = q.clone();
    q.narrow(2, 2, 2).neg_();
  }
}

TEST(ScalarFunctions, FollowPython) {
  const auto call = [](const char* name, const std::vector<c10::IValue>& arguments) {
    return find_scalar_function(name)->call(arguments);
  };
  EXPECT_EQ(call("floordiv", {-7, 2}).toInt(), -4);
  EXPECT_EQ(call("mod", {-7, 2}).toInt(), 1);
  EXPECT_EQ(call("mod", {7, -2}).toInt(), -1);
  EXPECT_EQ(call("truediv", {7, 2}).toDouble(), 3.5);
  EXPECT_EQ(call("pow", {3, 4}).toInt(), 81);
  EXPECT_EQ(call("pow", {2, -1}).toDouble(), 0.5);
  EXPECT_EQ(call("mul", {3, 0.5}).toDouble(), 1.5);
  EXPECT_EQ(call("neg", {int64_t{5}}).toInt(), -5);
  EXPECT_EQ(call("_sym_sqrt", {9}).toDouble(), 3.0);
  EXPECT_EQ(call("sym_max", {2, 3}).toInt(), 3);
  EXPECT_EQ(call("sym_min", {2, 3.5}).toDouble(), 2.0);
  EXPECT_EQ(call("sym_ite", {true, 1, 2}).toInt(), 1);
  EXPECT_EQ(call("lshift", {3, 2}).toInt(), 12);
  EXPECT_TRUE(call("and_", {true, true}).isBool());
  EXPECT_EQ(find_scalar_function("exec"), nullptr);
  constexpr int64_t kLargest = std::numeric_limits<int64_t>::max();
  for (const auto& [name, arguments] :
       std::vector<std::pair<const char*, std::vector<c10::IValue>>>{
           {"add", {kLargest, 1}},
           {"mul", {kLargest, 2}},
           {"pow", {10, 30}},
           {"floordiv", {1, 0}},
           {"mod", {1, 0}},
           {"truediv", {1, 0}},
           {"floordiv", {-kLargest - 1, -1}},
           {"lshift", {1, 70}},
           {"trunc", {1e30}}}) {
    EXPECT_THROW(call(name, arguments), DataError) << name;
  }
}

}  // namespace
}  // namespace gallop::model::exported
