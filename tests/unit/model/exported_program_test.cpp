// Exported programs against PyTorch: tests/parity/make_exported.py made the archives and their
// results.
#include <algorithm>
#include <fstream>
#include <limits>
#include <map>

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Generator.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/mse_loss.h>
#include <ATen/ops/zeros.h>
#include <gtest/gtest.h>

#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/model/exported/aliases.h"
#include "gallop/model/exported/archive.h"
#include "gallop/model/exported/evaluation_mode.h"
#include "gallop/model/exported/interpreter.h"
#include "gallop/model/exported/scalar_functions.h"
#include "unit/base/error_of.h"
#include "unit/fixtures.h"
#include "unit/model/digest.h"

namespace gallop::model::exported {
namespace {

using Json = nlohmann::json;

fs::path folder() { return fixtures() / "exported"; }

Json read(const fs::path& path) { return Json::parse(std::ifstream(path)); }

std::vector<std::string> names_in(const fs::path& path) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(path)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<int64_t> sizes_of(const Json& shape, const Json& sizes) {
  std::vector<int64_t> result;
  for (const Json& size : shape) {
    result.push_back(size.is_string() ? sizes.at(size.get<std::string>()).get<int64_t>()
                                      : size.get<int64_t>());
  }
  return result;
}

/// A program in one mode, with its own copy of the weights.
class Trained {
 public:
  Trained(const Json& json, const std::string& name, bool training) : json_(json) {
    const std::string file = (folder() / (name + ".pt2")).string();
    Archive archive(file);
    const std::string main = json["programs"]["train"];
    program_ = archive.program(main);
    if (!training) {
      if (json["programs"].contains("eval")) {
        program_ = archive.program(json["programs"]["eval"]);
      } else {
        EvaluationProgram switched = switch_to_evaluation(program_);
        EXPECT_TRUE(switched.unknown.empty()) << switched.unknown.front();
        program_ = std::move(switched.program);
      }
    }
    for (ArchivedTensor& stored : archive.weights(main)) add(stored);
    for (ArchivedTensor& stored : archive.constants(main)) add(stored);
    if (!training && json["programs"].contains("eval")) {
      for (ArchivedTensor& stored : archive.constants(json["programs"]["eval"])) add(stored);
    }
    interpreter_ = std::make_unique<Interpreter>(
        program_.graph, InterpreterOptions{.device = c10::kCPU, .has_own_dropout = false}, file);
  }

  std::map<std::string, at::Tensor> tensors;

  std::map<std::string, at::Tensor> run(const Json& sizes) const {
    at::Generator generator = at::globalContext().defaultGenerator(c10::kCPU);
    generator.set_current_seed(json_["seed"].get<uint64_t>());
    std::map<std::string, at::Tensor> given;
    for (const Json& input : json_["inputs"]) {
      const auto shape = sizes_of(input["shape"], sizes);
      const std::string name = input["name"];
      const int64_t count = c10::multiply_integers(shape);
      given[input["value"]] =
          input.contains("modulo")
              ? integers(name, count, input["modulo"].get<int64_t>()).view(shape)
              : tensor_of(parity::uniform(name, count), shape, at::kFloat);
    }
    std::vector<c10::IValue> values;
    for (const InputSpec& input : program_.inputs) {
      if (input.kind == InputSpec::Kind::kUserInput) {
        values.emplace_back(given.at(tensor_name_of(input.value)));
      } else if (input.kind == InputSpec::Kind::kUserConstant) {
        values.emplace_back();
      } else {
        values.emplace_back(tensors.at(input.name));
      }
    }
    const auto results = interpreter_->run(std::move(values));
    std::map<std::string, at::Tensor> outputs;
    for (size_t i = 0; i < results.size(); ++i) {
      if (results[i].isTensor()) outputs[program_.outputs[i].name] = results[i].toTensor();
    }
    return outputs;
  }

  at::Tensor loss(const std::map<std::string, at::Tensor>& outputs) const {
    const Json& loss = json_["loss"];
    const at::Tensor& output = outputs.at(loss["output"]);
    if (loss["kind"] == "inside") return output;
    if (loss["kind"] == "mse") {
      return at::mse_loss(
          output, tensor_of(parity::uniform("target", output.numel()), output.sizes(), at::kFloat));
    }
    const int64_t dim = at::maybe_wrap_dim(loss["class_dim"].get<int64_t>(), output.dim());
    std::vector<int64_t> shape = output.sizes().vec();
    shape.erase(shape.begin() + dim);
    const int64_t count = c10::multiply_integers(shape);
    const at::Tensor labels =
        loss["labels"] == "rows"
            ? at::arange(count)
            : integers("labels", count, loss["classes"].get<int64_t>()).view(shape);
    return at::cross_entropy_loss(output.movedim(dim, 1), labels);
  }

 private:
  void add(const ArchivedTensor& stored) {
    stored.tensor.set_requires_grad(stored.is_parameter && stored.requires_grad);
    for (const std::string& name : stored.names) tensors.insert_or_assign(name, stored.tensor);
  }

  const Json& json_;
  Program program_;
  std::unique_ptr<Interpreter> interpreter_;
};

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

std::string name_of_case(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Archives, ExportedProgram, testing::ValuesIn(names_in(folder())),
                         name_of_case);

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
