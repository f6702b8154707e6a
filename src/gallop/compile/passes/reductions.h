#pragma once

#include <optional>
#include <span>
#include <vector>

#include "gallop/compile/codegen/loop_builder.h"
#include "gallop/compile/graph.h"

namespace gallop::compile::passes {

/// What a call reduces.
struct Reduction {
  std::vector<int64_t> sizes;  ///< Of what it goes over.
  std::vector<bool> reduced;   ///< Which of these dimensions; at least one that is longer than 1.
  bool is_spread = false;      ///< Whether its result has all elements again, as softmax has.
};

/// Operators of loops that reduce over the same elements.
struct ReductionOps {
  Op sum, max, min;
};
inline constexpr ReductionOps kOfRows = {Op::kRowSum, Op::kRowMax, Op::kRowMin};
inline constexpr ReductionOps kOfColumns = {Op::kColumnSum, Op::kColumnMax, Op::kColumnMin};
inline constexpr ReductionOps kOfAll = {Op::kTotalSum, Op::kTotalMax, Op::kTotalMin};

/// What the node reduces, where lower_reduction() knows it: operator, formats and constants.
/// Narrower formats are added up in fp32 and rounded once, as LibTorch does.
std::optional<Reduction> reduction_of(const Graph& graph, const Node& node);

/// The node's result as an expression; `tensors` are its tensor arguments in their order.
Value lower_reduction(LoopBuilder& builder, const Graph& graph, const Node& node,
                      std::span<const Value> tensors, const ReductionOps& ops);

}  // namespace gallop::compile::passes
