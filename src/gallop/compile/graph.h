#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>

// What a function of tensors does, as data: a list of calls of operators that read and write parts
// of buffers. Views, aliases and changes in place need no operator of their own here: a tensor is a
// place in a buffer, and two tensors are the same memory where their places overlap.
namespace gallop::compile {

using BufferId = int32_t;
using ViewId = int32_t;
inline constexpr int32_t kNone = -1;

/// A piece of memory.
struct Buffer {
  enum class Kind {
    kInput,      ///< Belongs to an argument of the function; another one at each call.
    kState,      ///< Lives longer than a call: parameters, statistics, optimizer state, tables.
    kTemporary,  ///< Made by a node, and gone after its last use.
  };
  Kind kind = Kind::kTemporary;
  int64_t input = kNone;  ///< Which argument.
  at::Tensor state;       ///< A tensor over this memory, of kState.
  int64_t bytes = 0;
  at::Device device = c10::kCPU;
  /// Which buffer of the recording has these contents, and after how many changes in place; kNone
  /// where none has.
  int64_t origin = kNone, version = 0;
  at::Tensor copy_of;  ///< Of kState: the parameter that this is a bf16 copy of, if it is one.
};

/// A tensor: where it lies in a buffer. The offset counts its elements from the buffer's start, for
/// inputs from the argument's first byte.
struct View {
  BufferId buffer = kNone;
  int64_t offset = 0;
  std::vector<int64_t> sizes, strides;
  at::ScalarType dtype = c10::kFloat;

  bool operator==(const View&) const = default;
  int64_t numel() const;
  /// Whether every element of the memory from the first to the last is one of the tensor's, once.
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
  std::vector<Operand> results;  ///< The tensors in buffers that the node makes; else kNone.
  std::shared_ptr<const GeneratedLoop>
      loop{};  ///< What a generated loop computes; see loop_node.h.
};

/// How a node touches a view.
struct Access {
  ViewId view = kNone;
  bool reads = false, writes = false;
};

struct Graph {
  std::vector<Buffer> buffers;
  std::vector<View> views;
  std::vector<Node> nodes;  ///< In an order that is right to run them in.
  std::vector<ViewId> inputs;
  std::vector<ViewId> outputs;

  const Buffer& buffer_of(ViewId view) const { return buffers[views[view].buffer]; }
  /// The id of an equal view, new where there is none.
  ViewId intern(const View& view);
};

/// What the node reads and writes, the buffers that it makes last. An argument that is overwritten
/// whatever it held is not read.
std::vector<Access> accesses_of(const Node& node);

/// Whether a call draws random numbers, which must stay in their order.
bool is_random(const c10::OperatorHandle& op);

/// Whether a call starts what several processes do together, such as
/// "_c10d_functional::all_reduce". It goes on in the background, reading and writing its tensors,
/// until each result is waited for.
bool starts_collective(const c10::OperatorHandle& op);
/// Whether it waits for that; from then on the tensor that it is given is there.
bool waits_for_collective(const c10::OperatorHandle& op);

/// Whether its result holds whatever was in the memory, as that of aten::empty.
bool leaves_memory_as_it_is(const c10::OperatorHandle& op);

/// "aten::add.Tensor"
std::string name_of(const c10::OperatorHandle& op);

}  // namespace gallop::compile
