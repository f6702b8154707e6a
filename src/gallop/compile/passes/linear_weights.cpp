#include "gallop/compile/passes/matcher.h"
#include "gallop/compile/passes/passes.h"
#include "gallop/kernel/linear_weight.h"
#include "gallop/kernel/operators.h"

namespace gallop::compile::passes {

namespace {

std::optional<Rewrite> weight_gradient(Matcher& matcher, int64_t index) {
  if (!matcher.is(index, "aten::mm")) return std::nullopt;
  const ViewId turned = matcher.argument(index, 0), x = matcher.argument(index, 1);
  const ViewId weight = matcher.result(index);
  if (turned == kNone || x == kNone || weight == kNone || !is_contiguous(matcher.view(weight))) {
    return std::nullopt;
  }
  const ViewId dy = matcher.intern(transposed(matcher.view(turned)));
  if (!kernel::takes_linear_weight(matcher.stand_in(dy), matcher.stand_in(x))) return std::nullopt;
  Node node{.op = kernel::linear_weight_operator(),
            .arguments = {Operand::of(dy), Operand::of(x)},
            .results = {Operand::of(weight)}};
  return Rewrite{.removed = {index}, .added = {{index, std::move(node)}}};
}

}  // namespace

void linear_weights(Graph& graph) { rewrite_all(graph, weight_gradient); }

}  // namespace gallop::compile::passes
