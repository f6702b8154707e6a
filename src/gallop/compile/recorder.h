#pragma once

#include <functional>
#include <string>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include "gallop/compile/graph.h"

namespace gallop::compile {

/// A function of tensors. Besides the arguments it may read and change tensors that outlive the
/// call.
using Function = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& arguments)>;

/// State that a call of a function would have changed.
struct Change {
  at::Tensor state;  ///< A tensor over that memory, unchanged.
  at::Tensor after;  ///< Its memory as it would be, as bytes.
};

/// What a function does when called, found by a call without effects.
struct Recording {
  Graph graph;
  /// Why the graph is not the whole function, naming the operator: it reads a value on the host,
  /// its sizes depend on data, or its effects are unknown. Empty where it is; else all other fields
  /// but `calls` are empty.
  std::string refusal;
  std::vector<at::Tensor> results;
  std::vector<Change> changes;
  int64_t calls = 0;  ///< Of operators, up to the one that is the reason of a refusal.
};

/// Whether a recording is to know what the call computed. If not, `results` and `changes` stay
/// empty, and updates of state whose outcome the function does not use itself are not made.
enum class Outcome { kWanted, kNotWanted };

/// Calls the function in a dry run and records every operator that it calls below autograd: those
/// of forward passes, of backward passes, and of optimizers. What it changes besides its own
/// tensors it changes in copies, and random generators are put back, so that nothing has happened
/// afterwards. Only what operators do is seen; values that the function computes on the host are
/// constants of the graph, and what it changes there stays changed. One recording at a time: others
/// wait.
Recording record(const Function& function, const std::vector<at::Tensor>& inputs,
                 Outcome outcome = Outcome::kWanted);

/// Calls `trial`, which records a function, again for as long as the function gets further than the
/// time before: tables that it makes once, filled without an operator, are only there the next
/// time.
Recording retrace_until_stable(const std::function<Recording()>& trial);

/// While it lives, what this thread calls is no part of a recording.
class Unrecorded {
 public:
  Unrecorded();

 private:
  c10::impl::ExcludeDispatchKeyGuard guard_;
};

}  // namespace gallop::compile
