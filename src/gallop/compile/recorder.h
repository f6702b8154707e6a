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

/// A change of state that a call of a function would make.
struct Change {
  at::Tensor state;  ///< A tensor over that memory, unchanged.
  at::Tensor after;  ///< The changed memory, as bytes.
};

/// The effects of a function, found by a dry run.
struct Recording {
  Graph graph;
  /// Why the function cannot be recorded, naming the operator: it reads a value on the host, its
  /// sizes depend on data, or its effects are unknown. Empty if it can; else all other fields
  /// except `calls` are empty.
  std::string refusal;
  std::vector<at::Tensor> results;
  std::vector<Change> changes;
  int64_t calls = 0;  ///< Number of operator calls, up to the one that caused a refusal.
};

/// Whether a recording computes results. If not, `results` and `changes` stay empty, and updates of
/// state that the function does not read itself are not executed.
enum class Outcome { kWanted, kNotWanted };

/// Calls the function in a dry run and records every operator that it calls below autograd, in the
/// forward pass, the backward pass and the optimizer. Changes of existing tensors are made in
/// copies, and random generators are restored, so that the call has no effect. Only operators are
/// recorded: values that the function computes on the host are constants of the graph, and changes
/// on the host remain. One recording at a time: other threads wait.
Recording record(const Function& function, const std::vector<at::Tensor>& inputs,
                 Outcome outcome = Outcome::kWanted);

/// Repeats `trial`, which records a function, as long as the function gets further than the time
/// before: tables that it creates once, filled without an operator, exist only at the next call.
Recording retrace_until_stable(const std::function<Recording()>& trial);

}  // namespace gallop::compile
