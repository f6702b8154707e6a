#include "gallop/model/exported/exported_model.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/base/text.h"
#include "gallop/model/exported/aliases.h"
#include "gallop/model/exported/archive.h"
#include "gallop/model/exported/bindings.h"
#include "gallop/model/exported/evaluation_mode.h"
#include "gallop/model/exported/interpreter.h"
#include "gallop/tensor/safetensors.h"

namespace gallop::model {

namespace {

using exported::Archive;
using exported::ArchivedTensor;
using exported::BoundInput;
using exported::EvaluationProgram;
using exported::InputSpec;
using exported::Interpreter;
using exported::InterpreterOptions;
using exported::Program;

constexpr const char* kTrain = "train";
constexpr const char* kEval = "eval";
constexpr size_t kMostListed = 3;

/// A program with the tensors that it reads.
class RunnableProgram {
 public:
  RunnableProgram(Program program, std::vector<BoundInput> inputs, size_t output, std::string file)
      : program_(std::move(program)),
        inputs_(std::move(inputs)),
        output_(output),
        writes_inputs_(writes_user_inputs(program_)),
        file_(std::move(file)) {}

  const Program& program() const { return program_; }

  /// Resolves its operators for a device. `tensors` are all parameters, buffers and constants.
  void prepare(c10::Device device, const std::map<std::string, at::Tensor>& tensors) {
    interpreter_ =
        std::make_unique<Interpreter>(program_.graph, InterpreterOptions{.device = device}, file_);
    values_.clear();
    for (const InputSpec& input : program_.inputs) {
      c10::IValue value;
      if (input.kind != InputSpec::Kind::kUserInput &&
          input.kind != InputSpec::Kind::kUserConstant) {
        const auto found = tensors.find(input.name);
        if (found == tensors.end()) {
          throw DataError(fmt::format("{}: has no tensor '{}'", file_, printable(input.name)));
        }
        value = found->second;
      }
      values_.push_back(std::move(value));
    }
  }

  at::Tensor run(const NamedTensors& batch) const {
    std::vector<c10::IValue> values = values_;
    size_t next = 0;
    for (size_t i = 0; i < program_.inputs.size(); ++i) {
      if (program_.inputs[i].kind != InputSpec::Kind::kUserInput) continue;
      const BoundInput& input = inputs_[next++];
      const at::Tensor& field = field_of(batch, input);
      const at::Tensor tensor = as_input(input, field, program_.ranges, file_);
      values[i] = writes_inputs_ && tensor.is_alias_of(field) ? tensor.clone() : tensor;
    }
    return interpreter_->run(std::move(values))[output_].toTensor();
  }

 private:
  const at::Tensor& field_of(const NamedTensors& batch, const BoundInput& input) const {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : batch) {
      if (name == input.field) return tensor;
      names.push_back(name);
    }
    throw UsageError(
        fmt::format("model.inputs: input '{}' of {} takes the field '{}', but a batch has {}",
                    input.name, file_, printable(input.field), join_names(names, "and")));
  }

  Program program_;
  std::vector<BoundInput> inputs_;
  size_t output_;
  bool writes_inputs_;
  std::string file_;
  std::unique_ptr<Interpreter> interpreter_;
  std::vector<c10::IValue> values_;  // Of all inputs, without those of the user.
};

class ExportedModel final : public Model {
 public:
  ExportedModel(const ExportedConfig& config, const Task& task) : file_(printable(config.file)) {
    Archive archive(config.file);
    const auto& names = archive.models();
    const auto has = [&](const char* name) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    const std::string main = has(kTrain) ? kTrain : names.front();
    if (names.size() > 1 && !(names.size() == 2 && has(kTrain) && has(kEval))) {
      throw UsageError(fmt::format("{}: has the programs {}; name them \"train\" and \"eval\"",
                                   file_, join_names(names, "and")));
    }
    Program program = archive.program(main);
    load(archive, main, config.weights);
    const auto make = [&](Program made) {
      const auto inputs = bind_inputs(made, config.inputs, file_);
      const size_t output = find_output(made, config.output, file_);
      check_task(made, inputs, output, task, file_);
      return RunnableProgram(std::move(made), inputs, output, file_);
    };
    evaluation_.emplace(make(has(kEval) ? archive.program(kEval) : switched(program)));
    training_.emplace(make(std::move(program)));
    prepare(c10::kCPU);
  }

  at::Tensor forward(const at::Tensor& input) override {
    return forward(NamedTensors{{"input", input}});
  }
  at::Tensor forward(const NamedTensors& batch) override {
    const RunnableProgram& program = is_training_ ? *training_ : *evaluation_;
    NamedTensors formatted = batch;
    for (auto& [name, tensor] : formatted) {
      if (tensor.dim() == 4) tensor = tensor.contiguous(memory_format());
    }
    return program.run(formatted);
  }
  Output forward_to_head(const at::Tensor& input) override { return {forward(input)}; }
  Output forward_to_head(const NamedTensors& batch) override { return {forward(batch)}; }

  NamedTensors parameters() const override { return parameters_; }
  NamedTensors buffers() const override { return buffers_; }
  void set_training(bool training) override { is_training_ = training; }
  bool training() const override { return is_training_; }

  void to(at::Device device, bool channels_last) override {
    channels_last_ = channels_last;
    for (auto& [name, tensor] : tensors_) {
      const at::NoGradGuard no_grad;
      at::Tensor moved = tensor.to(device);
      if (tensor.is_leaf() && tensor.requires_grad() && moved.dim() == 4) {
        moved = moved.contiguous(memory_format());
      }
      tensor.set_data(moved);
    }
    prepare(device);
  }

 private:
  void load(Archive& archive, const std::string& model, const std::string& weights) {
    NamedTensors given;
    if (!weights.empty()) given = read_safetensors(weights).tensors;
    for (ArchivedTensor& stored : archive.weights(model, given)) {
      replace(stored, given);
      stored.tensor.set_requires_grad(stored.is_parameter && stored.requires_grad);
      for (const std::string& name : stored.names) tensors_.emplace(name, stored.tensor);
      (stored.tensor.requires_grad() ? parameters_ : buffers_)
          .push_back({stored.names.front(), stored.tensor});
    }
    for (const ArchivedTensor& stored : archive.constants(model)) {
      for (const std::string& name : stored.names) tensors_.emplace(name, stored.tensor);
    }
    if (parameters_.empty()) {
      throw UsageError(fmt::format("{}: has no parameter that requires a gradient", file_));
    }
  }

  // Copies the values that `weights` has for this tensor.
  void replace(const ArchivedTensor& stored, const NamedTensors& given) const {
    for (const std::string& name : stored.names) {
      const auto found = std::find_if(given.begin(), given.end(),
                                      [&](const NamedTensor& one) { return one.name == name; });
      if (found == given.end()) continue;
      if (found->tensor.sizes() != stored.tensor.sizes()) {
        throw UsageError(fmt::format("model.weights: '{}' has sizes {}, but {} needs {}",
                                     printable(name), fmt::join(found->tensor.sizes(), "x"), file_,
                                     fmt::join(stored.tensor.sizes(), "x")));
      }
      stored.tensor.copy_(found->tensor);
      return;
    }
  }

  // The program for evaluation. Throws UsageError if that cannot be known.
  Program switched(const Program& program) const {
    EvaluationProgram evaluation = switch_to_evaluation(program);
    if (evaluation.unknown.empty()) return std::move(evaluation.program);
    throw UsageError(fmt::format(
        "{}: was exported for training alone, and {} operators draw random numbers or write "
        "buffers, "
        "whose use in evaluation is not known (first: {}); export both modes as \"train\" and "
        "\"eval\", see docs/exported.md",
        file_, evaluation.unknown.size(), evaluation.unknown.front()));
  }

  void prepare(c10::Device device) {
    training_->prepare(device, tensors_);
    evaluation_->prepare(device, tensors_);
  }

  at::MemoryFormat memory_format() const {
    return channels_last_ ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
  }

  std::string file_;
  std::map<std::string, at::Tensor> tensors_;  // All, by each of their names.
  NamedTensors parameters_, buffers_;
  std::optional<RunnableProgram> training_, evaluation_;
  bool is_training_ = true;
  bool channels_last_ = false;
};

}  // namespace

void visit(config::Visitor& visitor, ExportedConfig& config) {
  visitor.field({.name = "file", .help = "archive of torch.export.save()"}, config.file);
  visitor.field({.name = "weights",
                 .help = "safetensors file with initial weights; empty: those of the file"},
                config.weights);
  visitor.field(
      {.name = "inputs",
       .help = "fields of the batch for the program's inputs, in order or as INPUT=FIELD; "
               "[]: by name"},
      config.inputs);
  visitor.field(
      {.name = "output", .help = "output that the loss reads; empty: the only one, or logits"},
      config.output);
}

std::unique_ptr<Model> make_exported(const ExportedConfig& config, const Task& task,
                                     InitialWeights /*weights*/) {
  if (config.file.empty()) {
    throw UsageError("model.file is missing: the archive of torch.export.save(), such as net.pt2");
  }
  return std::make_unique<ExportedModel>(config, task);
}

}  // namespace gallop::model
