#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/model/exported/parts.h"
#include "gallop/model/exported/runnable_program.h"
#include "gallop/model/model.h"
#include "gallop/tensor/named_tensor.h"

namespace gallop::model::exported {

/// A program in blocks, for pipelines. A parameter or buffer is in one block, but for parameters
/// that the first and the last one share.
class CutProgram {
 public:
  /// `tensors` as in values_of(). The program must outlive it.
  CutProgram(const RunnableProgram& program, const std::map<std::string, at::Tensor>& tensors);

  size_t blocks() const { return parts_.size(); }
  /// See Model::block_sequence(); empty if the program cannot be cut. What no block reads counts as
  /// part of the first one.
  BlockSequence sequence(const NamedTensors& parameters, const NamedTensors& buffers) const;
  /// See Model::forward_blocks().
  Output run(const NamedTensors& batch, const std::vector<at::Tensor>& passed, size_t begin,
             size_t end);

 private:
  struct State {
    const at::TensorImpl* tensor = nullptr;
    bool is_parameter = false;
  };
  std::vector<State> states_of(size_t block) const;
  bool merge_sharing_blocks();

  const RunnableProgram& program_;
  std::map<std::string, State> states_;  // By the name of the graph's input.
  GraphParts parts_;
  std::map<std::pair<size_t, size_t>, Interpreter::Part> prepared_;  // By begin and end.
};

}  // namespace gallop::model::exported
