#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include "gallop/model/exported/bindings.h"
#include "gallop/model/exported/interpreter.h"
#include "gallop/model/exported/schema.h"
#include "gallop/model/exported/tensor_parallel_plan.h"
#include "gallop/model/output.h"
#include "gallop/tensor/named_tensor.h"

namespace gallop::model::exported {

/// The inputs of a program's graph, where those of the user are empty. `tensors` are all
/// parameters, buffers and constants by name. Throws DataError, beginning with `file`, if one is
/// missing.
std::vector<c10::IValue> values_of(const Program& program,
                                   const std::map<std::string, at::Tensor>& tensors,
                                   const std::string& file);

/// A program with the tensors that it reads: maps batches to one of its outputs, and to its loss if
/// it computes one.
class RunnableProgram {
 public:
  /// `output` is the index of the output that run() returns, beside find_loss(); `file` is used in
  /// messages.
  RunnableProgram(Program program, std::vector<BoundInput> inputs, size_t output, std::string file);

  const Program& program() const { return program_; }
  const std::vector<BoundInput>& inputs() const { return inputs_; }

  /// The number of samples that the program states for all of its inputs, as it was exported
  /// without a Dim for their first dimension; 0 if there is none.
  int64_t stated_batch() const;

  /// Whether height and width of the images [N, C, H, W] in the field "input" vary independently.
  bool takes_any_size() const;

  /// See exported::plan_tensor_parallel().
  TensorParallelPlan plan_tensor_parallel(const TensorGroup& group, const TiedNames& tied) const;
  /// Divides the program by a plan for its parameters; prepare() must follow. Throws UsageError if
  /// a node needs whole tensors.
  void divide(const TensorParallelPlan& plan, const TiedNames& tied,
              const std::shared_ptr<const TensorParallel>& parallel);
  /// The part of Output::x.
  const OutputPart& output_part() const { return output_part_; }

  /// Resolves the operators for a device; `tensors` as in values_of(). Throws DataError for missing
  /// tensors and operators.
  void prepare(c10::Device device, const std::map<std::string, at::Tensor>& tensors);

  /// Blocks for activation checkpointing; see Model::blocks() and Model::recompute().
  int64_t blocks() const;
  void recompute(const std::vector<bool>& blocks);
  /// The names of the inputs, in the model, that each block reads and nothing else does.
  std::vector<std::vector<std::string>> inputs_of_blocks() const;
  void set_block_hooks(BlockHooks* hooks);

  /// Without a target, as in predictions, inputs that take it are 0, and Output::loss means
  /// nothing. Throws UsageError for batches without another field, or of sizes that the program
  /// does not take.
  Output run(const NamedTensors& batch) const;

  /// The indices of the outputs that run() reads.
  std::vector<size_t> outputs_read() const;
  /// Like run(), but for a part of the program: what it returns is Output::passed_on or, of the
  /// last part, Output::x and Output::loss. `given` as in Interpreter::run_part().
  Output run_part(const NamedTensors& batch, const Interpreter::Part& part,
                  const std::vector<at::Tensor>& given) const;

  /// Whether the program takes other numbers of samples than stated_batch(): runs it on zeros.
  bool takes_other_batches(c10::Device device) const;

 private:
  std::vector<c10::IValue> values_for(const NamedTensors& batch) const;
  TensorParallelOptions parallel_options(const TensorGroup& group, const TiedNames& tied) const;
  template <typename Run>
  std::vector<at::Tensor> run_interpreter(std::vector<c10::IValue> values, const Run& run) const;
  Output output_of(const std::vector<at::Tensor>& read) const;
  Output run_whole(std::vector<c10::IValue> values) const;
  at::Tensor missing_target(const BoundInput& input, const NamedTensors& batch) const;
  std::string differing_sizes(const std::vector<at::Tensor>& tensors) const;

  Program program_;
  std::vector<BoundInput> inputs_;
  std::vector<size_t> places_;  // Positions of `inputs_` among the inputs of the program.
  size_t output_;
  std::optional<size_t> loss_;
  bool writes_inputs_;
  std::string file_;
  std::unique_ptr<Interpreter> interpreter_;
  std::vector<bool> recomputed_;
  BlockHooks* hooks_ = nullptr;
  std::shared_ptr<const TensorParallel> parallel_;  // Null unless it is divided.
  OutputPart output_part_;
  std::vector<c10::IValue> values_;  // Values of all inputs, without those of the user.
};

}  // namespace gallop::model::exported
