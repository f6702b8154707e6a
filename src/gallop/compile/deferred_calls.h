#pragma once

#include <optional>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/stack.h>

#include "gallop/compile/analysis.h"
#include "gallop/compile/graph.h"

namespace gallop::compile {

/// How a call touches the buffers that it takes. What it only makes a view of, it neither reads nor
/// writes.
std::vector<Touch> touches_of_call(const Graph& graph, const Node& node);

/// Calls of a recording that change state and give nothing else, deferred until their results are
/// needed. In most steps they are not, and the state need not be copied.
class DeferredCalls {
 public:
  struct Call {
    Node node;
    c10::DispatchKeySet keys;
    torch::jit::Stack arguments;
    torch::jit::Stack results;  ///< Those that are new are yet to be filled.
    std::vector<Touch> touches;
  };

  /// What the call returns, without making it: what it changes, and new tensors that hold nothing
  /// yet. Nothing where it draws random numbers, is part of a collective, changes temporary
  /// tensors, makes more than a few numbers, or may make others of what it changes: of 'out', or of
  /// sizes that are not known.
  static std::optional<torch::jit::Stack> results_of(const Graph& graph, const Node& node,
                                                     const torch::jit::Stack& arguments);

  /// The arguments stay as they are, whatever sizes and memory the caller's tensors are given.
  void add(Call call);

  bool changes(BufferId buffer) const;
  /// Whether a call that touches these buffers must come after those that were put off.
  bool must_precede(const std::vector<Touch>& touches) const;

  /// All of them, in their order, which are put off no longer.
  std::vector<Call> take();

 private:
  std::vector<Call> calls_;
};

}  // namespace gallop::compile
