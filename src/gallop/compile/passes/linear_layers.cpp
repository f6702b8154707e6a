#include <algorithm>

#include "gallop/compile/passes/matcher.h"
#include "gallop/compile/passes/passes.h"
#include "gallop/kernel/linear.h"
#include "gallop/kernel/operators.h"

namespace gallop::compile::passes {

namespace {

bool takes(const Matcher& matcher, ViewId x, ViewId weight, ViewId bias, c10::ScalarType output) {
  return kernel::takes_linear(matcher.stand_in(x), matcher.stand_in(weight), matcher.stand_in(bias),
                              output);
}

// The ReLU that alone reads the node's result, or kNone.
int64_t relu_of(const Matcher& matcher, int64_t index) {
  const int64_t reader = only_reader_of(matcher, index);
  const bool is_relu =
      matcher.is(reader, "aten::relu") && is_contiguous(matcher.view(matcher.result(reader)));
  return is_relu ? reader : kNone;
}

std::optional<Rewrite> forward(Matcher& matcher, int64_t index) {
  const bool biased = matcher.is(index, "aten::addmm");
  if (!biased && !matcher.is(index, "aten::mm")) return std::nullopt;
  const size_t first = biased ? 1 : 0;
  const ViewId x = matcher.argument(index, first), right = matcher.argument(index, first + 1);
  ViewId y = matcher.result(index);
  if (x == kNone || right == kNone || y == kNone || !is_contiguous(matcher.view(y))) {
    return std::nullopt;
  }
  ViewId bias = kNone;
  if (biased) {
    bias = matcher.argument(index, 0);
    if (bias == kNone || !is_one(matcher, index, 3) || !is_one(matcher, index, 4)) {
      return std::nullopt;
    }
    bias = unconverted(matcher, bias, index);
  }
  const ViewId weight = matcher.intern(transposed(matcher.view(right)));
  const auto format = matcher.view(y).dtype;
  if (!takes(matcher, x, weight, bias, format)) return std::nullopt;
  Rewrite rewrite{.removed = {index}, .added = {}};
  const int64_t relu = relu_of(matcher, index);
  if (relu != kNone) {
    rewrite.removed.push_back(relu);
    y = matcher.reshaped(matcher.result(relu), matcher.view(y).sizes);
  }
  Node node{.op = kernel::linear_operator(),
            .arguments = {Operand::of(x), Operand::of(weight), Operand::of(bias),
                          Operand::of(c10::IValue(relu != kNone)),
                          Operand::of(c10::IValue(static_cast<int64_t>(format)))},
            .results = {Operand::of(y)}};
  rewrite.added.emplace_back(index, std::move(node));
  return rewrite;
}

// The calls of a layer and of its other gradients, each kNone if missing.
struct LayerOf {
  int64_t layer = kNone;
  int64_t x = kNone, bias = kNone;  // The GEMM for dx, and the sum of dy over its rows.
};

// The layer that has this weight gradient.
std::optional<LayerOf> layer_of(const Matcher& matcher, const WeightGradient& gradient) {
  LayerOf found;
  const auto readers = matcher.readers_of(gradient.dy);
  for (const int64_t layer : matcher.readers_of(gradient.x)) {
    if (!matcher.is(layer, "gallop::linear") ||
        !same_elements(matcher.graph(), matcher.argument(layer, 0), gradient.x)) {
      continue;
    }
    const ViewId weight = matcher.argument(layer, 1);
    if (matcher.view(weight).sizes != matcher.view(gradient.weight).sizes) continue;
    const auto dx = std::find_if(readers.begin(), readers.end(), [&](int64_t reader) {
      return matcher.is(reader, "aten::mm") && matcher.argument(reader, 0) == gradient.dy &&
             matcher.argument(reader, 1) == weight &&
             is_contiguous(matcher.view(matcher.result(reader)));
    });
    if (dx != readers.end()) {
      found.layer = layer;
      found.x = *dx;
      break;
    }
    if (found.layer == kNone) found.layer = layer;
  }
  if (found.layer == kNone) return std::nullopt;
  if (matcher.argument(found.layer, 2) != kNone) found.bias = column_sums_of(matcher, gradient.dy);
  return found;
}

std::optional<Rewrite> backward(Matcher& matcher, int64_t index) {
  const auto gradient = weight_gradient(matcher, index);
  if (!gradient || !is_contiguous(matcher.view(gradient->dy))) return std::nullopt;
  const auto found = layer_of(matcher, *gradient);
  if (!found) return std::nullopt;
  const ViewId x = gradient->x, dweight = gradient->weight;
  ViewId dy = gradient->dy;
  const ViewId weight = matcher.argument(found->layer, 1);
  if (!takes(matcher, x, weight, kNone, matcher.view(dy).dtype)) return std::nullopt;

  Rewrite rewrite{.removed = {index}, .added = {}};
  ViewId dx = kNone, dbias = kNone;
  std::vector<std::pair<ViewId, int64_t>> results = {{dweight, index}};
  if (found->x != kNone) {
    dx = matcher.result(found->x);
    rewrite.removed.push_back(found->x);
    results.emplace_back(dx, found->x);
  }
  if (found->bias != kNone) {
    const int64_t cast = widening_of(matcher, found->bias);
    const int64_t last = cast == kNone ? found->bias : cast;
    if (matcher.view(matcher.result(last)).dtype == c10::kFloat) {
      rewrite.removed.push_back(found->bias);
      if (cast != kNone) rewrite.removed.push_back(cast);
      dbias = matcher.reshaped(matcher.result(last), {matcher.view(dy).sizes.back()});
      results.emplace_back(dbias, last);
    }
  }
  const int64_t place = *std::min_element(rewrite.removed.begin(), rewrite.removed.end());

  // The gradient of the layer's ReLU, if nothing else reads it.
  ViewId y = kNone;
  const int64_t relu = matcher.maker_of(dy);
  if (matcher.constant(found->layer, 3).toBool() && is_relu_backward(matcher, relu) &&
      matcher.is_only_read_by(dy, rewrite.removed) &&
      matcher.maker_of(matcher.argument(relu, 1)) == found->layer) {
    const ViewId outer = matcher.argument(relu, 0);
    if (outer != kNone && is_contiguous(matcher.view(outer)) &&
        matcher.can_be_read_at(outer, relu, place)) {
      rewrite.removed.push_back(relu);
      const auto sizes = matcher.view(dy).sizes;
      dy = matcher.reshaped(outer, sizes);
      y = matcher.reshaped(matcher.argument(relu, 1), sizes);
    }
  }
  if (!matcher.can_be_read_at(x, index, place) ||
      !matcher.can_be_read_at(weight, found->layer, place)) {
    return std::nullopt;
  }
  for (const auto& [result, maker] : results) {
    if (!matcher.is_untouched_between(result, place - 1, maker)) return std::nullopt;
  }
  Node node{.op = kernel::linear_backward_operator(),
            .arguments = {Operand::of(dy), Operand::of(y), Operand::of(x), Operand::of(weight),
                          Operand::of(c10::IValue(dx != kNone)), Operand::of(c10::IValue(true)),
                          Operand::of(c10::IValue(dbias != kNone))},
            .results = {Operand::of(dx), Operand::of(dweight), Operand::of(dbias)}};
  rewrite.added.emplace_back(place, std::move(node));
  return rewrite;
}

}  // namespace

void linear_layers(Graph& graph) {
  rewrite_all(graph, forward);
  rewrite_all(graph, backward);
}

}  // namespace gallop::compile::passes
