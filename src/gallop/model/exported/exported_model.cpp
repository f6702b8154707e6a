#include "gallop/model/exported/exported_model.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <c10/util/strides.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/base/error.h"
#include "gallop/base/file.h"
#include "gallop/base/text.h"
#include "gallop/config/option_error.h"
#include "gallop/model/exported/aliases.h"
#include "gallop/model/exported/archive.h"
#include "gallop/model/exported/bindings.h"
#include "gallop/model/exported/cut_program.h"
#include "gallop/model/exported/evaluation_mode.h"
#include "gallop/model/exported/runnable_program.h"
#include "gallop/model/exported/tensor_parallel_plan.h"
#include "gallop/model/tensor_parallel.h"
#include "gallop/tensor/safetensors.h"

namespace gallop::model {

namespace {

using exported::Archive;
using exported::ArchivedTensor;
using exported::BoundInput;
using exported::CutProgram;
using exported::EvaluationProgram;
using exported::InputSpec;
using exported::Program;
using exported::RunnableProgram;
using exported::written_inputs;

class ExportedModel final : public Model {
 public:
  ExportedModel(const ExportedConfig& config, const Task& task, const InitialWeights& weights)
      : config_(config), file_(printable(config.file)) {
    const bool is_rebuilt = !weights.run.empty() && fs::exists(definition_of(weights.run));
    Archive archive(is_rebuilt ? definition_of(weights.run) : fs::path(config.file));
    if (archive.is_definition() != is_rebuilt) {
      throw config::OptionError(
          "model.file",
          fmt::format("{} is the definition of a run's model and has no weights", file_));
    }
    if (is_rebuilt) compare_with_original(archive);
    const std::string main = archive.training_program();
    Program program = archive.program(main);
    load(archive, main, is_rebuilt ? std::string() : config.weights);
    const auto make = [&](Program made) {
      auto inputs = bind_inputs(made, config.inputs, file_);
      for (BoundInput& input : inputs) input.has_padding = task.padded && input.field == "input";
      const size_t output = find_output(made, config.output, file_);
      check_task(made, inputs, output, task, file_);
      return RunnableProgram(std::move(made), std::move(inputs), output, file_);
    };
    if (archive.models().size() > 1) {
      Program evaluation = archive.program(Archive::kEval);
      evaluation_constants_ = archive.constants_of(Archive::kEval, evaluation);
      evaluation_.emplace(make(std::move(evaluation)));
    } else {
      evaluation_.emplace(make(switched(program)));
    }
    find_statistics(program);
    training_.emplace(make(std::move(program)));
    // A run has its own already.
    if (!is_rebuilt) definition_ = archive.definition();
    if (weights.sizes_only) {
      keep_sizes_only();
      return;
    }
    prepare(c10::kCPU);
    const int64_t stated = training_->stated_batch();
    if (stated > 0 && !evaluation_->takes_other_batches(c10::kCPU)) fixed_batch_ = stated;
  }

  at::Tensor forward(const at::Tensor& input) override {
    return forward(NamedTensors{{"input", input}});
  }
  at::Tensor forward(const NamedTensors& batch) override { return forward_to_head(batch).logits(); }
  Output forward_to_head(const at::Tensor& input) override {
    return forward_to_head(NamedTensors{{"input", input}});
  }
  Output forward_to_head(const NamedTensors& batch) override {
    const RunnableProgram& program = is_training_ ? *training_ : *evaluation_;
    const NamedTensors formatted = in_format(batch);
    return fixed_batch_ > 0 ? run_in_batches(program, formatted) : program.run(formatted);
  }

  ParallelizedModel parallelize(const TensorGroup& group) override {
    if (group.sequence_parallel()) {
      throw UsageError(
          "parallel.sequence_parallel: the models 'gpt' and 'vit' divide tokens between layers, "
          "exported programs do not; omit it");
    }
    const exported::TiedNames tied = tied_names();
    const exported::TensorParallelPlan plan = training_->plan_tensor_parallel(group, tied);
    const auto parallel = std::make_shared<TensorParallel>(group);
    training_->divide(plan, tied, parallel);
    evaluation_->divide(plan, tied, parallel);
    for (const auto& [name, shard] : plan) {
      const at::Tensor& parameter = tensors_.at(name);
      parallel->shard(parameter, shard.dim, parameter.size(shard.dim) / shard.group);
    }
    const size_t blocks = cut_ ? cut_->blocks() : 0;
    cut_.reset();
    prepare(parameters_.front().tensor.device());
    if (blocks > 0 && cut().blocks() != blocks) {
      throw UsageError(
          fmt::format("{}: a divided layer spans blocks of a pipeline; use "
                      "parallel.tensor_parallel_degree=1",
                      file_));
    }
    NamedTensors all = parameters_;
    all.insert(all.end(), buffers_.begin(), buffers_.end());
    return parallel->result(all);
  }

  BlockSequence block_sequence() const override { return cut().sequence(parameters_, buffers_); }
  Output forward_blocks(const NamedTensors& batch, const std::vector<at::Tensor>& passed,
                        int64_t begin, int64_t end) override {
    return cut().run(in_format(batch), passed, static_cast<size_t>(begin),
                     static_cast<size_t>(end));
  }

  NamedTensors parameters() const override { return parameters_; }
  NamedTensors buffers() const override { return buffers_; }
  NamedTensors statistics() const override { return statistics_; }
  void set_training(bool training) override { is_training_ = training; }
  bool training() const override { return is_training_; }
  int64_t blocks() const override { return training_->blocks(); }
  void recompute(const std::vector<bool>& blocks) override { training_->recompute(blocks); }
  std::vector<std::vector<std::string>> block_parameters() const override {
    return block_parameters(is_training_ ? *training_ : *evaluation_);
  }
  void set_block_hooks(BlockHooks* hooks) override {
    training_->set_block_hooks(hooks);
    evaluation_->set_block_hooks(hooks);
  }
  int64_t fixed_batch() const override { return fixed_batch_; }
  bool takes_any_size() const override {
    return training_->takes_any_size() && evaluation_->takes_any_size();
  }

  void to(at::Device device, bool channels_last) override {
    channels_last_ = channels_last;
    for (auto& [name, tensor] : tensors_) {
      const at::NoGradGuard no_grad;
      at::Tensor moved = tensor.to(device);
      if (tensor.is_leaf() && tensor.requires_grad() && moved.dim() == 4) moved = in_format(moved);
      tensor.set_data(moved);
    }
    for (auto& [name, tensor] : evaluation_constants_) tensor = tensor.to(device);
    prepare(device);
  }

  std::string draws_from_generator() const override {
    return exported::first_draw(training_->program().graph, parameters_.front().tensor.device());
  }
  std::vector<std::string> files() const override {
    std::vector<std::string> files{config_.file};
    if (!config_.weights.empty()) files.push_back(config_.weights);
    return files;
  }
  void save_definition(const std::string& run) const override {
    write_file_atomically(definition_of(run), definition_);
  }
  std::vector<std::string> notes() const override { return notes_; }

 private:
  // Vectors are small, and another name of a tied parameter is no parameter of a block.
  std::vector<std::vector<std::string>> block_parameters(const RunnableProgram& program) const {
    std::map<std::string, int64_t> dims;
    std::map<const at::TensorImpl*, int> names;
    for (const auto& [name, tensor] : parameters_) dims[name] = tensor.dim();
    for (const auto& [name, tensor] : tensors_) names[tensor.unsafeGetTensorImpl()] += 1;
    auto blocks = program.inputs_of_blocks();
    for (auto& block : blocks) {
      std::erase_if(block, [&](const std::string& name) {
        return dims[name] < 2 || names[tensors_.at(name).unsafeGetTensorImpl()] > 1;
      });
    }
    return blocks;
  }

  exported::TiedNames tied_names() const {
    std::map<const at::TensorImpl*, std::string> first;
    exported::TiedNames tied;
    for (const auto& [name, tensor] : tensors_) {
      tied[name] = first.emplace(tensor.unsafeGetTensorImpl(), name).first->second;
    }
    return tied;
  }

  // Tied names share a tensor as before.
  void keep_sizes_only() {
    std::map<const at::TensorImpl*, at::Tensor> on_meta;
    for (auto& [name, tensor] : tensors_) {
      auto [found, is_new] = on_meta.try_emplace(tensor.unsafeGetTensorImpl());
      if (is_new) {
        found->second = at::empty_like(tensor, tensor.options().device(c10::kMeta))
                            .set_requires_grad(tensor.requires_grad());
      }
    }
    const auto replace = [&](at::Tensor& tensor) {
      tensor = on_meta.at(tensor.unsafeGetTensorImpl());
    };
    for (NamedTensors* const list : {&parameters_, &buffers_, &statistics_}) {
      for (NamedTensor& one : *list) replace(one.tensor);
    }
    for (auto& [name, tensor] : tensors_) replace(tensor);
    for (auto& [name, tensor] : evaluation_constants_) tensor = tensor.to(c10::kMeta);
    prepare(c10::kMeta);
  }

  static fs::path definition_of(const fs::path& run) { return run / "model.pt2"; }

  // A run keeps its own definition, so that it can be resumed although the file has been changed.
  void compare_with_original(const Archive& definition) {
    std::error_code ignored;
    if (!fs::exists(config_.file, ignored)) return;
    try {
      if (Archive(config_.file).fingerprint() == definition.fingerprint()) return;
    } catch (const Error&) {
      // A file that is being written again differs, too.
    }
    notes_.push_back(
        fmt::format("{} has changed since the run began, which continues with the model that it "
                    "began with; to train the new one, start another run",
                    config_.file));
  }

  // Splits and fills up a batch for a program of another number of samples. Samples that fill it up
  // are copies of the first one. Training steps have this number already; others have no loss.
  Output run_in_batches(const RunnableProgram& program, const NamedTensors& batch) const {
    const int64_t rows = batch.front().tensor.size(0);
    if (rows == fixed_batch_) return program.run(batch);
    std::vector<at::Tensor> outputs;
    for (int64_t begin = 0; begin < rows; begin += fixed_batch_) {
      const int64_t count = std::min(fixed_batch_, rows - begin);
      NamedTensors part;
      for (const auto& [name, tensor] : batch) {
        at::Tensor slice = tensor.narrow(0, begin, count);
        if (count < fixed_batch_) {
          std::vector<int64_t> sizes = slice.sizes().vec();
          sizes.front() = fixed_batch_ - count;
          slice = at::cat({slice, slice.narrow(0, 0, 1).expand(sizes)});
        }
        part.push_back({name, slice});
      }
      outputs.push_back(program.run(part).x.narrow(0, 0, count));
    }
    Output output{at::cat(outputs)};
    output.part = program.output_part();
    return output;
  }

  void load(Archive& archive, const std::string& model, const std::string& weights) {
    NamedTensors given;
    if (!weights.empty()) given = read_safetensors(weights).tensors;
    const std::vector<ArchivedTensor> weights_of_file = archive.weights(model, given);
    bool is_replaced = given.empty();
    for (const ArchivedTensor& stored : weights_of_file) is_replaced |= replace(stored, given);
    if (!is_replaced) {
      throw config::OptionError(
          "model.weights",
          fmt::format("{} has no tensor of {}: its names are such as '{}', and those "
                      "of the model such as '{}'",
                      printable(weights), file_, printable(given.front().name),
                      printable(weights_of_file.front().names.front())));
    }
    exported::add_by_name(weights_of_file, tensors_);
    for (const ArchivedTensor& stored : weights_of_file) {
      (stored.tensor.requires_grad() ? parameters_ : buffers_)
          .push_back({stored.names.front(), stored.tensor});
    }
    exported::add_by_name(archive.constants(model), tensors_);
    if (parameters_.empty()) {
      throw UsageError(fmt::format("{}: has no parameter that requires a gradient", file_));
    }
  }

  void find_statistics(const Program& program) {
    for (const std::string& name : written_inputs(program, InputSpec::Kind::kBuffer)) {
      const auto written = tensors_.find(name);
      if (written == tensors_.end()) continue;  // An error of prepare().
      const auto found =
          std::find_if(buffers_.begin(), buffers_.end(),
                       [&](const NamedTensor& one) { return one.tensor.is_same(written->second); });
      if (found != buffers_.end()) statistics_.push_back(*found);
    }
    std::sort(
        statistics_.begin(), statistics_.end(),
        [](const NamedTensor& one, const NamedTensor& other) { return one.name < other.name; });
  }

  // Copies the values that `given` has for this tensor. Returns whether it has some.
  bool replace(const ArchivedTensor& stored, const NamedTensors& given) const {
    for (const std::string& name : stored.names) {
      const at::Tensor* const found = find_tensor(given, name);
      if (found == nullptr) continue;
      if (found->sizes() != stored.tensor.sizes()) {
        throw config::OptionError("model.weights",
                                  fmt::format("'{}' has sizes {}, but {} needs {}", printable(name),
                                              fmt::join(found->sizes(), "x"), file_,
                                              fmt::join(stored.tensor.sizes(), "x")));
      }
      stored.tensor.copy_(*found);
      return true;
    }
    return false;
  }

  // The program for evaluation. Throws UsageError if that cannot be known.
  Program switched(const Program& program) const {
    EvaluationProgram evaluation = switch_to_evaluation(program);
    if (evaluation.unknown.empty()) return std::move(evaluation.program);
    throw UsageError(fmt::format("{}: {}", file_, evaluation.problem()));
  }

  void prepare(c10::Device device) {
    training_->prepare(device, tensors_);
    std::map<std::string, at::Tensor> tensors = evaluation_constants_;
    tensors.insert(tensors_.begin(), tensors_.end());
    evaluation_->prepare(device, tensors);
  }

  // With one channel, a tensor is contiguous in both formats, and operators choose theirs by the
  // strides.
  at::Tensor in_format(const at::Tensor& tensor) const {
    const auto format =
        channels_last_ ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
    const bool has_format =
        tensor.is_contiguous(format) &&
        (channels_last_ || tensor.strides() == c10::contiguous_strides(tensor.sizes()));
    return has_format ? tensor : tensor.clone(format);
  }

  CutProgram& cut() const {
    if (!cut_) cut_.emplace(*training_, tensors_);
    return *cut_;
  }

  NamedTensors in_format(NamedTensors batch) const {
    for (auto& [name, tensor] : batch) {
      if (tensor.dim() == 4) tensor = in_format(tensor);
    }
    return batch;
  }

  ExportedConfig config_;
  std::string file_;        // For messages.
  std::string definition_;  // The bytes of the archive without weights.
  std::vector<std::string> notes_;
  int64_t fixed_batch_ = 0;
  std::map<std::string, at::Tensor> tensors_;  // All, by each of their names.
  std::map<std::string, at::Tensor>
      evaluation_constants_;  // Constants of a separate evaluation program.
  NamedTensors parameters_, buffers_, statistics_;
  std::optional<RunnableProgram> training_, evaluation_;
  mutable std::optional<CutProgram> cut_;  // The cut training program; made when it is asked for.
  bool is_training_ = true;
  bool channels_last_ = false;
};

}  // namespace

void visit(config::Visitor& visitor, ExportedConfig& config) {
  visitor.field({.name = "file", .help = "archive of torch.export.save()", .is_path = true},
                config.file);
  visitor.field({.name = "weights",
                 .help = "safetensors file with initial weights; empty: those of the file",
                 .is_path = true},
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
                                     InitialWeights weights) {
  if (config.file.empty()) {
    throw config::OptionError("model.file",
                              "is missing: the archive of torch.export.save(), such as net.pt2");
  }
  const bool is_rebuilt = !weights.run.empty();
  if (!is_rebuilt && !fs::exists(config.file)) {
    throw config::OptionError("model.file",
                              fmt::format("{} does not exist", printable(config.file)));
  }
  return std::make_unique<ExportedModel>(config, task, weights);
}

}  // namespace gallop::model
