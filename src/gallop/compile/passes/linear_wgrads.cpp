#include "gallop/compile/passes/matcher.h"
#include "gallop/compile/passes/passes.h"
#include "gallop/kernel/linear_wgrad.h"
#include "gallop/kernel/operators.h"

namespace gallop::compile::passes {

namespace {

std::optional<Rewrite> replace(Matcher& matcher, int64_t index) {
  const auto found = weight_gradient(matcher, index);
  if (!found ||
      !kernel::takes_linear_wgrad(matcher.stand_in(found->dy), matcher.stand_in(found->x))) {
    return std::nullopt;
  }
  Node node{.op = kernel::linear_wgrad_operator(),
            .arguments = {Operand::of(found->dy), Operand::of(found->x)},
            .results = {Operand::of(found->weight)}};
  return Rewrite{.removed = {index}, .added = {{index, std::move(node)}}};
}

}  // namespace

void linear_wgrads(Graph& graph) { rewrite_all(graph, replace); }

}  // namespace gallop::compile::passes
