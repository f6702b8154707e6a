#include "gallop/compile/passes/matcher.h"
#include "gallop/compile/passes/passes.h"
#include "gallop/kernel/linear_gemm.h"
#include "gallop/kernel/operators.h"

namespace gallop::compile::passes {

namespace {

std::optional<Rewrite> product(Matcher& matcher, int64_t index) {
  if (!matcher.is(index, "aten::mm")) return std::nullopt;
  const ViewId x = matcher.argument(index, 0), right = matcher.argument(index, 1);
  const ViewId y = matcher.result(index);
  if (x == kNone || right == kNone || y == kNone || !is_contiguous(matcher.view(y))) {
    return std::nullopt;
  }
  // The backward pass takes the layer's weight itself, the forward pass its transpose.
  const bool transposed_weight = !is_contiguous(matcher.view(right));
  const ViewId weight = transposed_weight ? matcher.intern(transposed(matcher.view(right))) : right;
  if (!kernel::takes_linear_gemm(matcher.stand_in(x), matcher.stand_in(weight),
                                 transposed_weight)) {
    return std::nullopt;
  }
  Node node{.op = kernel::linear_gemm_operator(),
            .arguments = {Operand::of(x), Operand::of(weight),
                          Operand::of(c10::IValue(transposed_weight))},
            .results = {Operand::of(y)}};
  return Rewrite{.removed = {index}, .added = {{index, std::move(node)}}};
}

}  // namespace

void linear_gemms(Graph& graph) { rewrite_all(graph, product); }

}  // namespace gallop::compile::passes
