#pragma once

#include <memory>
#include <string>
#include <vector>

#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>

#include "gallop/model/exported/schema.h"
#include "gallop/tensor/block_hooks.h"
#include "gallop/tensor/tensor_group.h"

namespace gallop::model::exported {

struct InterpreterOptions {
  /// Replaces every device of the program, which was exported on another machine.
  c10::Device device = c10::kCPU;
  /// Whether dropout draws Gallop's random numbers, which depend on the seed, the step and the rank
  /// (functional::dropout()), instead of those of LibTorch's default generator.
  bool has_own_dropout = true;
  /// Whether constant causal masks of attention become its flag, as always on a GPU.
  bool simplifies_masks = false;
  /// The inputs of the graph that are activations, whose gradients a block passes on.
  std::vector<std::string> user_inputs{};
  /// The processes of a program that is divided (divided_program.h), which must outlive the
  /// interpreter; null for others.
  const TensorGroup* group = nullptr;
};

/// Runs the graph of an exported program: calls the operators one after the other by their schemas,
/// so that autograd records them as in Python. A value is released after its last use.
class Interpreter {
 public:
  /// Resolves all operators and arguments. Throws DataError, beginning with `file`, that names
  /// node, operator and source line of an operator that LibTorch does not have, or that does not
  /// take such arguments.
  Interpreter(const Graph& graph, const InterpreterOptions& options, const std::string& file);
  ~Interpreter();

  /// `inputs` are those of the graph, in order; constants among them are not checked. Errors of an
  /// operator are UsageErrors that name node, module and source line.
  std::vector<c10::IValue> run(std::vector<c10::IValue> inputs) const;

  /// A part of the graph; see GraphParts.
  struct Part {
    std::vector<bool> nodes;             ///< Those that are run.
    std::vector<std::string> given{};    ///< The tensors of the part before that it needs.
    std::vector<size_t> outputs{};       ///< Indices of the graph's outputs that it returns.
    std::vector<std::string> results{};  ///< If not empty: the tensors that it returns instead.
  };
  /// Like run(), but for a part, with the values of Part::given.
  std::vector<c10::IValue> run_part(std::vector<c10::IValue> inputs, const Part& part,
                                    const std::vector<at::Tensor>& given) const;

  /// The number of the graph's inputs.
  size_t inputs() const;

  /// The number of blocks that can be computed again in the backward pass; see find_blocks().
  size_t blocks() const;
  /// Selects those that are, one flag for each. Initially none.
  void recompute(const std::vector<bool>& blocks);
  /// The inputs of the graph that each block reads and nothing else does.
  std::vector<std::vector<size_t>> inputs_of_blocks() const;
  /// See Model::set_block_hooks().
  void set_block_hooks(BlockHooks* hooks);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gallop::model::exported
