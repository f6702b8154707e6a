#include "gallop/model/exported/runnable_program.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/model/exported/aliases.h"
#include "gallop/model/exported/divided_program.h"
#include "gallop/model/tensor_parallel.h"

namespace gallop::model::exported {

std::vector<c10::IValue> values_of(const Program& program,
                                   const std::map<std::string, at::Tensor>& tensors,
                                   const std::string& file) {
  std::vector<c10::IValue> values;
  for (const InputSpec& input : program.inputs) {
    c10::IValue value;
    if (input.kind != InputSpec::Kind::kUserInput && input.kind != InputSpec::Kind::kUserConstant) {
      const auto found = tensors.find(input.name);
      if (found == tensors.end()) {
        throw DataError(fmt::format("{}: has no tensor '{}'", file, printable(input.name)));
      }
      value = found->second;
    }
    values.push_back(std::move(value));
  }
  return values;
}

namespace {

constexpr std::string_view kTarget = "target";

bool is_part_of(const NamedTensors& batch, const at::Tensor& tensor) {
  return std::any_of(batch.begin(), batch.end(),
                     [&](const NamedTensor& field) { return field.tensor.is_alias_of(tensor); });
}

}  // namespace

RunnableProgram::RunnableProgram(Program program, std::vector<BoundInput> inputs, size_t output,
                                 std::string file)
    : program_(std::move(program)),
      inputs_(std::move(inputs)),
      output_(output),
      loss_(find_loss(program_, output)),
      writes_inputs_(!written_inputs(program_, InputSpec::Kind::kUserInput).empty()),
      file_(std::move(file)) {
  for (size_t i = 0; i < program_.inputs.size(); ++i) {
    if (program_.inputs[i].kind == InputSpec::Kind::kUserInput) places_.push_back(i);
  }
}

int64_t RunnableProgram::stated_batch() const {
  int64_t stated = 0;
  for (const BoundInput& input : inputs_) {
    if (input.meta.sizes.empty()) return 0;
    const Size& rows = input.meta.sizes.front();
    if (!rows.is_constant() || !rows.hint) return 0;
    if (stated != 0 && *rows.hint != stated) return 0;
    stated = *rows.hint;
  }
  return stated;
}

bool RunnableProgram::takes_any_size() const {
  constexpr size_t kImageDims = 4, kHeight = 2, kWidth = 3;
  const auto input = std::find_if(inputs_.begin(), inputs_.end(),
                                  [](const BoundInput& one) { return one.field == "input"; });
  if (input == inputs_.end() || input->meta.sizes.size() != kImageDims) return false;
  const Size &height = input->meta.sizes[kHeight], &width = input->meta.sizes[kWidth];
  return !height.is_constant() && !width.is_constant() && !is_same(height, width);
}

TensorParallelOptions RunnableProgram::parallel_options(const TensorGroup& group,
                                                        const TiedNames& tied) const {
  return {.entries = group.tp_plan(),
          .processes = group.size(),
          .file = file_,
          .logits = tensor_name_of(program_.outputs[output_].value),
          .tied = tied};
}

TensorParallelPlan RunnableProgram::plan_tensor_parallel(const TensorGroup& group,
                                                         const TiedNames& tied) const {
  return exported::plan_tensor_parallel(program_, parallel_options(group, tied));
}

void RunnableProgram::divide(const TensorParallelPlan& plan, const TiedNames& tied,
                             const std::shared_ptr<const TensorParallel>& parallel) {
  DividedProgram divided =
      exported::divide(program_, plan, parallel_options(parallel->group(), tied));
  program_ = std::move(divided.program);
  parallel_ = parallel;
  if (divided.classes_divided > 0) output_part_ = {parallel, divided.classes_divided};
}

void RunnableProgram::prepare(c10::Device device,
                              const std::map<std::string, at::Tensor>& tensors) {
  InterpreterOptions options{.device = device, .group = parallel_ ? &parallel_->group() : nullptr};
  for (const size_t place : places_) {
    options.user_inputs.push_back(tensor_name_of(program_.inputs[place].value));
  }
  interpreter_ = std::make_unique<Interpreter>(program_.graph, options, file_);
  if (!recomputed_.empty()) interpreter_->recompute(recomputed_);
  interpreter_->set_block_hooks(hooks_);
  values_ = values_of(program_, tensors, file_);
}

int64_t RunnableProgram::blocks() const { return static_cast<int64_t>(interpreter_->blocks()); }

void RunnableProgram::recompute(const std::vector<bool>& blocks) {
  interpreter_->recompute(blocks);
  recomputed_ = blocks;
}

std::vector<std::vector<std::string>> RunnableProgram::inputs_of_blocks() const {
  std::vector<std::vector<std::string>> all;
  for (const auto& inputs : interpreter_->inputs_of_blocks()) {
    auto& names = all.emplace_back();
    for (const size_t input : inputs) names.push_back(program_.inputs[input].name);
  }
  return all;
}

void RunnableProgram::set_block_hooks(BlockHooks* hooks) {
  hooks_ = hooks;
  interpreter_->set_block_hooks(hooks);
}

std::vector<c10::IValue> RunnableProgram::values_for(const NamedTensors& batch) const {
  std::vector<c10::IValue> values = values_;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    at::Tensor tensor = missing_target(inputs_[i], batch);
    if (!tensor.defined()) tensor = as_input(inputs_[i], batch, program_.ranges, file_);
    values[places_[i]] = writes_inputs_ && is_part_of(batch, tensor) ? tensor.clone() : tensor;
  }
  return values;
}

std::vector<size_t> RunnableProgram::outputs_read() const {
  std::vector<size_t> outputs = {output_};
  if (loss_) outputs.push_back(*loss_);
  return outputs;
}

Output RunnableProgram::run(const NamedTensors& batch) const {
  return run_whole(values_for(batch));
}

Output RunnableProgram::run_part(const NamedTensors& batch, const Interpreter::Part& part,
                                 const std::vector<at::Tensor>& given) const {
  std::vector<at::Tensor> results =
      run_interpreter(values_for(batch), [&](std::vector<c10::IValue> values) {
        return interpreter_->run_part(std::move(values), part, given);
      });
  if (part.results.empty()) return output_of(results);
  return {.passed_on = std::move(results)};
}

// The output in the values of outputs_read().
Output RunnableProgram::output_of(const std::vector<at::Tensor>& read) const {
  Output output{read.front()};
  if (loss_) output.loss = read.back();
  output.part = output_part_;
  return output;
}

// Zeros for an input that takes the target of a batch that has none; undefined for others.
// Dimensions that vary have the sizes of those with the same symbol in other inputs.
at::Tensor RunnableProgram::missing_target(const BoundInput& input,
                                           const NamedTensors& batch) const {
  if (input.field != kTarget || find_tensor(batch, kTarget) != nullptr) return {};
  std::map<std::string, int64_t> known;
  for (const BoundInput& other : inputs_) {
    const at::Tensor* const tensor = find_tensor(batch, other.field);
    if (tensor == nullptr || static_cast<size_t>(tensor->dim()) != other.meta.sizes.size())
      continue;
    for (size_t i = 0; i < other.meta.sizes.size(); ++i) {
      known.emplace(other.meta.sizes[i].symbol, tensor->size(static_cast<int64_t>(i)));
    }
  }
  std::vector<int64_t> sizes;
  for (const Size& size : input.meta.sizes) {
    const auto found = known.find(size.symbol);
    if (!size.is_constant() && found == known.end()) return {};
    sizes.push_back(size.is_constant() ? size.hint.value_or(1) : found->second);
  }
  return at::zeros(sizes, batch.front().tensor.options().dtype(input.meta.dtype));
}

bool RunnableProgram::takes_other_batches(c10::Device device) const {
  const int64_t rows = stated_batch() + 1;
  std::vector<c10::IValue> values = values_;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    std::vector<int64_t> sizes{rows};
    for (size_t j = 1; j < inputs_[i].meta.sizes.size(); ++j) {
      sizes.push_back(inputs_[i].meta.sizes[j].hint.value_or(1));
    }
    values[places_[i]] = at::zeros(sizes, at::TensorOptions(inputs_[i].meta.dtype).device(device));
  }
  const at::NoGradGuard no_grad;
  try {
    const at::Tensor output = run_whole(std::move(values)).x;
    return output.dim() > 0 && output.size(0) == rows;
  } catch (const UsageError&) {
    return false;
  }
}

Output RunnableProgram::run_whole(std::vector<c10::IValue> values) const {
  return output_of(run_interpreter(std::move(values), [this](std::vector<c10::IValue> given) {
    const std::vector<c10::IValue> outputs = interpreter_->run(std::move(given));
    std::vector<c10::IValue> read;
    for (const size_t index : outputs_read()) read.push_back(outputs[index]);
    return read;
  }));
}

// What `run` returns, all of which are tensors.
template <typename Run>
std::vector<at::Tensor> RunnableProgram::run_interpreter(std::vector<c10::IValue> values,
                                                         const Run& run) const {
  std::vector<at::Tensor> tensors;
  for (const size_t place : places_) tensors.push_back(values[place].toTensor());
  try {
    std::vector<at::Tensor> results;
    for (const c10::IValue& result : run(std::move(values))) results.push_back(result.toTensor());
    return results;
  } catch (const c10::OutOfMemoryError&) {
    throw;
  } catch (const c10::Error& error) {
    const std::string differing = differing_sizes(tensors);
    throw UsageError(fmt::format("{}{}{}", error.what_without_backtrace(),
                                 differing.empty() ? "" : "; ", differing));
  }
}

// How the inputs differ from what the program states; empty if they do not.
std::string RunnableProgram::differing_sizes(const std::vector<at::Tensor>& tensors) const {
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const auto sizes = tensors[i].sizes();
    for (size_t j = 0; j < sizes.size(); ++j) {
      const Size& stated = inputs_[i].meta.sizes[j];
      if (!stated.is_constant() || !stated.hint || *stated.hint == sizes[j]) continue;
      return fmt::format(
          "dimension {} of input '{}' is {}, and was exported for {} alone: export with a Dim for "
          "it",
          j, printable(inputs_[i].name), sizes[j], *stated.hint);
    }
  }
  return {};
}

}  // namespace gallop::model::exported
