#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

// The intermediate representation of a function of tensors: a list of operator calls that read and
// write parts of buffers. Views, aliases and in-place operators need no special nodes: a tensor is
// a view of a buffer, and tensors alias where their views overlap.
namespace gallop::compile {

using BufferId = int32_t;
using ViewId = int32_t;
inline constexpr int32_t kNone = -1;

/// An allocation.
struct Buffer {
  enum class Kind {
    kInput,      ///< Memory of an argument of the function, which differs from call to call.
    kState,      ///< Outlives a call: parameters, statistics, optimizer state, tables.
    kTemporary,  ///< Created by a node, and released after its last use.
  };
  Kind kind = Kind::kTemporary;
  int64_t input = kNone;     ///< Index of the argument.
  at::Tensor state;          ///< A tensor over this memory, of kState.
  bool is_constant = false;  ///< Of kState: its contents never change.
  int64_t bytes = 0;
  at::Device device = c10::kCPU;
  /// The buffer of the recording with these contents, and the number of in-place changes before;
  /// kNone if there is none.
  int64_t origin = kNone, version = 0;
  at::Tensor copy_of;  ///< The parameter of which this buffer of kState is a bf16 copy, if any.
};

/// A tensor: its position in a buffer. The offset counts elements from the start of the buffer, for
/// inputs from the argument's first byte.
struct View {
  BufferId buffer = kNone;
  int64_t offset = 0;
  std::vector<int64_t> sizes, strides;
  at::ScalarType dtype = c10::kFloat;
  bool is_conj = false;  ///< Whether the elements are the conjugates of those in memory.

  bool operator==(const View&) const = default;
  int64_t numel() const;
  /// Whether every element of the memory from the first to the last belongs to the tensor exactly
  /// once.
  bool is_dense() const;
};

/// One argument or result of a call: a constant, a tensor, or a list of tensors or of optional
/// ones, in which kNone stands for an undefined tensor.
struct Operand {
  enum class Kind { kConstant, kTensor, kTensors, kOptionalTensors };
  Kind kind = Kind::kConstant;
  c10::IValue constant;
  std::vector<ViewId> views;

  static Operand of(c10::IValue constant) { return {.constant = std::move(constant)}; }
  static Operand of(ViewId view) {
    return {.kind = Kind::kTensor, .constant = {}, .views = {view}};
  }
};

struct GeneratedLoop;

/// A call of an operator.
struct Node {
  c10::OperatorHandle op;
  std::vector<Operand> arguments;
  std::vector<Operand> results;  ///< Tensors in buffers that the node creates; else kNone.
  std::shared_ptr<const GeneratedLoop>
      loop{};  ///< The computation of a generated loop; see loop_node.h.
  /// The recorded calls whose work the node does: indices in Graph::calls, in increasing order.
  std::vector<int32_t> origins{};
};

/// Adds the origins of another node, whose work is done by this one from now on.
void add_origins(Node& node, const std::vector<int32_t>& origins);

/// A recorded call of an operator.
struct RecordedCall {
  std::string phase{};  ///< Of the step: "forward"; empty outside of any.
  std::string layer{};  ///< That of the innermost TraceSpan; empty outside of any.
  /// Autograd's sequence numbers: of the node that was made last before the call, and of the node
  /// whose backward pass made the call; kNone if there is none.
  int64_t made = kNone, backward = kNone;
  /// The source line, from the innermost SourceContext; in backward that of the call whose gradient
  /// is computed. Empty if unknown.
  std::string source{};
  std::vector<BufferId> read{}, written{};  ///< Buffers of the recorded graph.
};

/// The calls of a recording, with the state that they use.
struct RecordedCalls {
  std::vector<RecordedCall> calls;
  std::vector<at::Tensor> state;  ///< By buffer of the recorded graph; undefined if it is no state.
};

/// How a node accesses a view.
struct Access {
  ViewId view = kNone;
  bool reads = false, writes = false;
};

struct Graph {
  std::vector<Buffer> buffers;
  std::vector<View> views;
  std::vector<Node> nodes;  ///< In a valid order of execution.
  std::vector<ViewId> inputs;
  std::vector<ViewId> outputs;
  int64_t number = 0;                            ///< Among the graphs of a CompiledFunction.
  std::shared_ptr<const RecordedCalls> calls{};  ///< Null if the graph was not recorded.

  const Buffer& buffer_of(ViewId view) const { return buffers[views[view].buffer]; }
  /// The id of an equal view, added if there is none.
  ViewId intern(const View& view);
};

/// The accesses of a node, with the buffers that it creates last. An argument that is overwritten
/// completely is not read.
std::vector<Access> accesses_of(const Node& node);

/// Whether a call draws random numbers, and must therefore keep its order.
bool is_random(const c10::OperatorHandle& op);

/// Whether a call starts a collective, such as "_c10d_functional::all_reduce". It continues in the
/// background, reading and writing its tensors, until each result is waited for.
bool starts_collective(const c10::OperatorHandle& op);
/// Whether a call waits for a collective, after which its argument is valid.
bool waits_for_collective(const c10::OperatorHandle& op);

/// Whether a call has no effect in a dry run: collectives, in which other processes would have to
/// take part, and what makes room for them.
bool is_idle_in_dry_run(const c10::OperatorHandle& op);

/// Whether a call leaves its result uninitialized, as aten::empty does.
bool leaves_memory_as_it_is(const c10::OperatorHandle& op);

/// Where the first of the recorded calls whose work the node does was made, for messages: ": node
/// 'add_1' (aten::add.Tensor at net.py:12, in forward)"; empty if unknown.
std::string source_of(const Graph& graph, const Node& node);

/// "aten::add.Tensor"
std::string name_of(const c10::OperatorHandle& op);

}  // namespace gallop::compile
