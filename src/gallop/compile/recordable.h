#pragma once

#include <string>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

// Which calls of a function can be part of a graph.
namespace gallop::compile {

/// Why a call of the operator with the arguments on top of the stack cannot be recorded, such as
/// "reads a value on the host"; empty if it can.
std::string why_not_recorded(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

/// Why the tensor cannot be represented as a view of a buffer, such as "is quantized"; empty if it
/// can. A lazy conjugate is one.
std::string unusual(const at::Tensor& tensor);

/// Whether the operator changes the sizes of a tensor in place and not the memory, as squeeze_ and
/// t_ do. Later uses of the tensor record its sizes.
bool changes_only_sizes(const c10::OperatorHandle& op);

/// Whether the scalars among the results depend on sizes alone. A call without other results is no
/// node.
bool asks_for_sizes(const c10::OperatorHandle& op);

}  // namespace gallop::compile
