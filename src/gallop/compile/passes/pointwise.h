#pragma once

#include <span>
#include <vector>

#include <c10/core/Device.h>

#include "gallop/compile/codegen/loop_builder.h"
#include "gallop/compile/graph.h"

namespace gallop::compile::passes {

/// Whether the node computes each element of its only result from the corresponding (broadcast)
/// elements of its arguments, with an operator, data types and constants that lower() supports.
bool is_pointwise(const Graph& graph, const Node& node);

/// Whether the node is `cat` or `stack` of tensors of equal sizes on a GPU, which a loop over these
/// sizes can write: LibTorch's kernels access single elements there.
bool is_join(const Graph& graph, const Node& node);

/// The part of a join's result that tensor `number` becomes; without joins, the result.
View part_of_result(const Graph& graph, const Node& node, size_t number = 0);

/// The tensors that the node reads, without undefined ones.
std::vector<ViewId> tensors_of(const Node& node);

/// The node's result as an expression, rounded to its data type where LibTorch's operator rounds.
/// `tensors` are its tensor arguments in their order, without undefined ones; for a node that
/// is_pointwise() accepts.
Value lower(LoopBuilder& builder, const Graph& graph, const Node& node,
            std::span<const Value> tensors);

/// Whether loops for the device compute in this floating-point type. fp16 is for GPUs: CPUs train
/// in bf16.
bool is_loop_float(at::ScalarType type, c10::Device device);

/// The loop format of a tensor's data type; nothing for unsupported types.
std::optional<Format> format_of(at::ScalarType type);

}  // namespace gallop::compile::passes
