#pragma once

#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include "gallop/compile/analysis.h"
#include "gallop/compile/graph.h"

namespace gallop::compile {

/// How a call accesses the buffers of its arguments. A buffer of which it only returns a view
/// counts as neither read nor written.
std::vector<Touch> touches_of_call(const Graph& graph, const Node& node);

/// Calls of a recording whose only effect is a change of state, deferred until their results are
/// needed. In most steps they are not needed, and the state need not be copied.
class DeferredCalls {
 public:
  struct Call {
    Node node;
    c10::DispatchKeySet keys;
    torch::jit::Stack arguments;
    torch::jit::Stack results;  ///< New tensors among them are not filled yet.
    std::vector<Touch> touches;
  };

  /// The results of the call without executing it: the tensors that it changes, and new
  /// uninitialized ones. Nothing if it draws random numbers, is part of a collective, changes
  /// temporary tensors, creates more than a few elements, or may reallocate the tensors that it
  /// changes: those of 'out', or of unknown sizes.
  static std::optional<torch::jit::Stack> results_of(const Graph& graph, const Node& node,
                                                     const torch::jit::Stack& arguments);

  /// Keeps the arguments as they are, whatever sizes and memory the caller's tensors get later.
  void add(Call call);

  bool changes(BufferId buffer) const;
  /// Whether a call with these accesses must run after the deferred ones.
  bool must_precede(const std::vector<Touch>& touches) const;

  /// Removes and returns all calls, in their order.
  std::vector<Call> take();

 private:
  std::vector<Call> calls_;
};

}  // namespace gallop::compile
