#include "gallop/compile/passes/matcher.h"
#include "gallop/compile/passes/passes.h"
#include "gallop/kernel/linear_wgrad.h"
#include "gallop/kernel/operators.h"

namespace gallop::compile::passes {

namespace {

std::optional<Rewrite> weight_gradient(Matcher& matcher, int64_t index) {
  if (!matcher.is(index, "aten::mm")) return std::nullopt;
  const ViewId transposed_dy = matcher.argument(index, 0), x = matcher.argument(index, 1);
  const ViewId weight = matcher.result(index);
  if (transposed_dy == kNone || x == kNone || weight == kNone ||
      !is_contiguous(matcher.view(weight))) {
    return std::nullopt;
  }
  const ViewId dy = matcher.intern(transposed(matcher.view(transposed_dy)));
  if (!kernel::takes_linear_wgrad(matcher.stand_in(dy), matcher.stand_in(x))) return std::nullopt;
  Node node{.op = kernel::linear_wgrad_operator(),
            .arguments = {Operand::of(dy), Operand::of(x)},
            .results = {Operand::of(weight)}};
  return Rewrite{.removed = {index}, .added = {{index, std::move(node)}}};
}

}  // namespace

void linear_wgrads(Graph& graph) { rewrite_all(graph, weight_gradient); }

}  // namespace gallop::compile::passes
