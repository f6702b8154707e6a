#pragma once

// Archives of tests/parity/make_exported.py with their results.

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/Context.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cross_entropy_loss.h>
#include <ATen/ops/mse_loss.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "gallop/base/file.h"
#include "gallop/model/exported/aliases.h"
#include "gallop/model/exported/archive.h"
#include "gallop/model/exported/evaluation_mode.h"
#include "gallop/model/exported/interpreter.h"
#include "unit/fixtures.h"
#include "unit/model/digest.h"

namespace gallop::model::exported {

using Json = nlohmann::json;

inline fs::path folder() { return fixtures() / "exported"; }

inline Json read(const fs::path& path) { return Json::parse(std::ifstream(path)); }

inline std::vector<std::string> names_in(const fs::path& path) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(path)) {
    if (entry.path().extension() == ".json") names.push_back(entry.path().stem().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

inline std::vector<int64_t> sizes_of(const Json& shape, const Json& sizes) {
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
  Trained(const Json& json, const std::string& name, bool training, bool has_own_dropout = false)
      : json_(json) {
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
    InterpreterOptions options{.device = c10::kCPU, .has_own_dropout = has_own_dropout};
    for (const InputSpec& input : program_.inputs) {
      if (input.kind != InputSpec::Kind::kUserInput) continue;
      options.user_inputs.push_back(tensor_name_of(input.value));
    }
    interpreter_ = std::make_unique<Interpreter>(program_.graph, options, file);
  }

  std::map<std::string, at::Tensor> tensors;
  Interpreter& interpreter() { return *interpreter_; }

  /// The outputs by name, after seeding LibTorch's generator as the fixtures were.
  std::map<std::string, at::Tensor> run(const Json& sizes) const {
    at::Generator generator = at::globalContext().defaultGenerator(c10::kCPU);
    generator.set_current_seed(json_["seed"].get<uint64_t>());
    return run_on(inputs(sizes));
  }

  /// The inputs by their value's name.
  std::map<std::string, at::Tensor> inputs(const Json& sizes) const {
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
    return given;
  }

  std::map<std::string, at::Tensor> run_on(const std::map<std::string, at::Tensor>& given) const {
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

  /// The loss's target for these outputs; undefined where the loss is inside.
  at::Tensor target(const std::map<std::string, at::Tensor>& outputs) const {
    const Json& loss = json_["loss"];
    const at::Tensor& output = outputs.at(loss["output"]);
    if (loss["kind"] == "inside") return {};
    if (loss["kind"] == "mse") {
      return tensor_of(parity::uniform("target", output.numel()), output.sizes(), at::kFloat);
    }
    std::vector<int64_t> shape = output.sizes().vec();
    shape.erase(shape.begin() + class_dim(output));
    const int64_t count = c10::multiply_integers(shape);
    if (loss["labels"] == "rows") return at::arange(count);
    return integers("labels", count, loss["classes"].get<int64_t>()).view(shape);
  }

  at::Tensor loss(const std::map<std::string, at::Tensor>& outputs,
                  const at::Tensor& target) const {
    const Json& loss = json_["loss"];
    const at::Tensor& output = outputs.at(loss["output"]);
    if (loss["kind"] == "inside") return output;
    if (loss["kind"] == "mse") return at::mse_loss(output, target);
    return at::cross_entropy_loss(output.movedim(class_dim(output), 1), target);
  }
  at::Tensor loss(const std::map<std::string, at::Tensor>& outputs) const {
    return loss(outputs, target(outputs));
  }

 private:
  int64_t class_dim(const at::Tensor& output) const {
    return at::maybe_wrap_dim(json_["loss"]["class_dim"].get<int64_t>(), output.dim());
  }
  void add(const ArchivedTensor& stored) {
    stored.tensor.set_requires_grad(stored.is_parameter && stored.requires_grad);
    for (const std::string& name : stored.names) tensors.insert_or_assign(name, stored.tensor);
  }

  const Json& json_;
  Program program_;
  std::unique_ptr<Interpreter> interpreter_;
};

inline std::string name_of_case(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace gallop::model::exported
