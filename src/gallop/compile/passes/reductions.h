#pragma once

#include <optional>
#include <span>
#include <vector>

#include "gallop/compile/codegen/loop_builder.h"
#include "gallop/compile/graph.h"

namespace gallop::compile::passes {

/// The reduction of a call.
struct Reduction {
  std::vector<int64_t> sizes;  ///< Sizes of its input.
  std::vector<bool> reduced;   ///< The dimensions that are reduced; at least one is longer than 1.
  bool is_spread = false;      ///< Whether its result has all elements, as that of softmax.
};

/// Operators of loops that reduce over the same elements.
struct ReductionOps {
  Op sum, max, min;
};
inline constexpr ReductionOps kOfRows = {Op::kRowSum, Op::kRowMax, Op::kRowMin};
inline constexpr ReductionOps kOfColumns = {Op::kColumnSum, Op::kColumnMax, Op::kColumnMin};
inline constexpr ReductionOps kOfAll = {Op::kTotalSum, Op::kTotalMax, Op::kTotalMin};

/// The reduction of the node, if lower_reduction() supports its operator, data types and constants.
/// Narrower types are accumulated in fp32 and rounded once, as in LibTorch.
std::optional<Reduction> reduction_of(const Graph& graph, const Node& node);

/// The node's result as an expression; `tensors` are its tensor arguments in their order.
Value lower_reduction(LoopBuilder& builder, const Graph& graph, const Node& node,
                      std::span<const Value> tensors, const ReductionOps& ops);

}  // namespace gallop::compile::passes
