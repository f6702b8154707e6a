#pragma once

#include <string>

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>

// What of a function's calls can be part of a graph.
namespace gallop::compile {

/// Why a call of the operator with the arguments on top of the stack cannot be: "reads a value on
/// the host"; empty where it can.
std::string why_not_recorded(const c10::OperatorHandle& op, const torch::jit::Stack& stack);

/// What is unusual about the tensor, so that no view in a buffer can stand for it: "is quantized".
std::string unusual(const at::Tensor& tensor);

/// Whether the operator changes the sizes of a tensor and not the memory, as squeeze_ and t_ do:
/// who uses the tensor later says how.
bool changes_only_sizes(const c10::OperatorHandle& op);

/// Whether what is a number among the results follows from sizes alone. A call with nothing else is
/// no node.
bool asks_for_sizes(const c10::OperatorHandle& op);

}  // namespace gallop::compile
