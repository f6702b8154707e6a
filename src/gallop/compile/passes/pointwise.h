#pragma once

#include <span>

#include <c10/core/Device.h>

#include "gallop/compile/codegen/loop_builder.h"
#include "gallop/compile/graph.h"

namespace gallop::compile::passes {

/// Whether the node computes each element of its one result from the same elements of its arguments
/// (broadcast), in a way that lower() knows: operator, formats and constants.
bool is_pointwise(const Graph& graph, const Node& node);

/// The node's result as an expression, rounded to its format where LibTorch's operator rounds.
/// `tensors` are its tensor arguments in their order, without those that are undefined; for a node
/// that is_pointwise() accepts.
Value lower(LoopBuilder& builder, const Graph& graph, const Node& node,
            std::span<const Value> tensors);

/// Whether loops for the device compute in this format, of numbers with fractions. fp16 is for
/// GPUs: CPUs train in bf16.
bool is_loop_float(at::ScalarType type, c10::Device device);

/// The format of loops for a tensor's; nothing for those that loops do not have.
std::optional<Format> format_of(at::ScalarType type);

}  // namespace gallop::compile::passes
