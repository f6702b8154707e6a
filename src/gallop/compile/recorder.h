#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/compile/graph.h"

namespace gallop::compile {

/// A function of tensors. Besides the arguments it may read and change tensors that outlive the
/// call.
using Function = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& arguments)>;

/// What one call of a function did. The call is real: its results are valid and it counts.
struct Recording {
  std::vector<at::Tensor> results;
  Graph graph;
  /// Why the graph is not the whole function, naming the operator: it reads a value on the host,
  /// its sizes depend on data, or its effects are unknown. Empty where it is.
  std::string refusal;
};

/// Calls the function and records every operator that it calls below autograd: those of forward
/// passes, of backward passes, and of optimizers. Only what operators do is seen; values that the
/// function computes on the host are constants of the graph. One recording at a time: others wait.
Recording record(const Function& function, const std::vector<at::Tensor>& inputs);

/// Whether two constants are the same, tensors by their contents.
bool is_same(const c10::IValue& a, const c10::IValue& b);

/// How two recordings of one function differ, such as a number that the host computes anew at each
/// call; empty where both do the same.
std::string difference(const Graph& a, const Graph& b);

}  // namespace gallop::compile
