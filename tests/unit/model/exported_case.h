#pragma once

// Archives of tests/parity/make_exported.py with their results.

#include <algorithm>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <ATen/Context.h>
#include <ATen/WrapDimUtils.h>
#include <ATen/core/Generator.h>
#include <ATen/core/grad_mode.h>
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

inline void seed(c10::Device device, uint64_t number) {
  at::Generator generator = at::globalContext().defaultGenerator(device);
  generator.set_current_seed(number);
}

/// The dimension of the classes in an output.
inline int64_t class_dim(const Json& loss, const at::Tensor& output) {
  return at::maybe_wrap_dim(loss["class_dim"].get<int64_t>(), output.dim());
}

/// The loss with which the fixtures were made. One that the program computes is a mean, whatever
/// the reduction.
inline at::Tensor loss_of(const Json& loss, const at::Tensor& output, const at::Tensor& target,
                          at::Reduction::Reduction reduction) {
  if (loss["kind"] == "inside") return output;
  if (loss["kind"] == "mse") return at::mse_loss(output, target, reduction);
  const at::Tensor scores = output.movedim(class_dim(loss, output), 1).to(at::kFloat);
  return at::cross_entropy_loss(scores, target, {}, reduction);
}

/// A program in one mode, with its own copy of the weights.
class Trained {
 public:
  Trained(const Json& json, const std::string& name, bool training, bool has_own_dropout = false,
          c10::Device device = c10::kCPU)
      : json_(json), device_(device) {
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
    InterpreterOptions options{.device = device, .has_own_dropout = has_own_dropout};
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
    seed(device_, json_["seed"].get<uint64_t>());
    return run_on(inputs(sizes));
  }

  /// The inputs by their value's name.
  std::map<std::string, at::Tensor> inputs(const Json& sizes) const {
    std::map<std::string, at::Tensor> given;
    for (const Json& input : json_["inputs"]) {
      const auto shape = sizes_of(input["shape"], sizes);
      const std::string name = input["name"];
      const int64_t count = c10::multiply_integers(shape);
      const at::Tensor tensor =
          input.contains("modulo")
              ? integers(name, count, input["modulo"].get<int64_t>()).view(shape)
              : tensor_of(parity::uniform(name, count), shape, at::kFloat);
      given[input["value"]] = tensor.to(device_);
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
      return tensor_of(parity::uniform("target", output.numel()), output.sizes(), at::kFloat)
          .to(device_);
    }
    std::vector<int64_t> shape = output.sizes().vec();
    shape.erase(shape.begin() + class_dim(loss, output));
    const int64_t count = c10::multiply_integers(shape);
    if (loss["labels"] == "rows") return at::arange(count, device_);
    return integers("labels", count, loss["classes"].get<int64_t>()).view(shape).to(device_);
  }

  at::Tensor loss(const std::map<std::string, at::Tensor>& outputs,
                  const at::Tensor& target) const {
    const Json& loss = json_["loss"];
    return loss_of(loss, outputs.at(loss["output"]), target, at::Reduction::Mean);
  }
  at::Tensor loss(const std::map<std::string, at::Tensor>& outputs) const {
    return loss(outputs, target(outputs));
  }

 private:
  void add(const ArchivedTensor& stored) {
    const at::Tensor tensor = stored.tensor.to(device_);
    tensor.set_requires_grad(stored.is_parameter && stored.requires_grad);
    for (const std::string& name : stored.names) tensors.insert_or_assign(name, tensor);
  }

  const Json& json_;
  c10::Device device_;
  Program program_;
  std::unique_ptr<Interpreter> interpreter_;
};

/// A step of SGD with its own weights.
class Step {
 public:
  using Tensors = std::vector<at::Tensor>;

  Step(const Json& json, const std::string& name, c10::Device device = c10::kCPU)
      : json_(json),
        name_(name),
        device_(device),
        trained_(json, name, /*training=*/true, /*has_own_dropout=*/false, device) {
    for (const Json& input : json["inputs"]) inputs_.insert(input["value"].get<std::string>());
    std::set<const void*> seen;
    for (const auto& [key, tensor] : trained_.tensors) {
      if (seen.insert(tensor.unsafeGetTensorImpl()).second) state_.push_back(tensor);
    }
  }

  const Tensors& state() const { return state_; }

  /// The inputs in the order of their values' names, and the target if there is one.
  Tensors arguments(const Json& sizes) const {
    Tensors all;
    for (const auto& [name, tensor] : trained_.inputs(sizes)) all.push_back(tensor);
    const Trained other(json_, name_, /*training=*/true, /*has_own_dropout=*/false, device_);
    const at::NoGradGuard no_grad;
    const at::Tensor target = other.target(other.run(sizes));
    if (target.defined()) all.push_back(target);
    return all;
  }

  /// Returns the loss.
  Tensors operator()(const Tensors& arguments) {
    for (const at::Tensor& tensor : state_) tensor.mutable_grad() = at::Tensor();
    std::map<std::string, at::Tensor> given;
    size_t next = 0;
    for (const std::string& name : inputs_) given[name] = arguments[next++];
    const at::Tensor target = next < arguments.size() ? arguments.back() : at::Tensor();
    const at::Tensor loss = trained_.loss(trained_.run_on(given), target);
    loss.backward();
    const at::NoGradGuard no_grad;
    for (const at::Tensor& tensor : state_) {
      if (!tensor.requires_grad() || !tensor.grad().defined()) continue;
      tensor.sub_(tensor.grad(), json_["learning_rate"].get<double>());
    }
    return {loss.detach()};
  }

 private:
  const Json& json_;
  std::string name_;
  c10::Device device_;
  Trained trained_;
  std::set<std::string> inputs_;
  Tensors state_;
};

/// Some programs write their inputs.
inline std::vector<at::Tensor> copies(const std::vector<at::Tensor>& tensors) {
  std::vector<at::Tensor> all;
  for (const at::Tensor& tensor : tensors) all.push_back(tensor.clone());
  return all;
}

inline std::string name_of_case(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

}  // namespace gallop::model::exported
