#include <algorithm>

#include "gallop/compile/passes/matcher.h"
#include "gallop/compile/passes/passes.h"
#include "gallop/kernel/layer_norm.h"
#include "gallop/kernel/operators.h"

namespace gallop::compile::passes {

namespace {

// Arguments of aten::native_layer_norm and of its gradient.
enum Norm : size_t { kX, kShape, kWeight, kBias, kEps };
enum Gradient : size_t { kDy, kSum, kGradientShape, kMean, kInverse, kGradientWeight };

bool is_over_last(const Matcher& matcher, const c10::IValue& shape, ViewId x) {
  return x != kNone && shape.isIntList() && shape.toIntVector().size() == 1 &&
         matcher.view(x).sizes.back() == shape.toIntVector()[0];
}

// Whether saved statistics have the kernel's layout: fp32, one per row, contiguous.
bool is_statistic(const Matcher& matcher, ViewId tensor, int64_t rows) {
  return tensor != kNone && matcher.view(tensor).dtype == c10::kFloat &&
         is_contiguous(matcher.view(tensor)) && matcher.view(tensor).numel() == rows;
}

// The cast to bf16 that reads a node's result; if `alone`, it must be the only reader.
int64_t narrowing_of(const Matcher& matcher, int64_t maker, size_t number, bool alone) {
  const ViewId made = matcher.result(maker, number);
  if (made == kNone || matcher.view(made).dtype != c10::kFloat) return kNone;
  for (const int64_t reader : matcher.readers_of(made)) {
    const bool is_cast = is_plain_cast(matcher, reader) &&
                         matcher.maker_of(matcher.argument(reader, 0), number) == maker &&
                         is_contiguous(matcher.view(matcher.result(reader))) &&
                         matcher.view(matcher.result(reader)).dtype == c10::kBFloat16;
    if (is_cast && (!alone || matcher.is_only_read_by(made, {reader}))) return reader;
  }
  return kNone;
}

// Both terms of the sum that is normalized, if the kernel can compute the sum as well.
std::optional<std::pair<ViewId, ViewId>> terms_of(const Matcher& matcher, int64_t add,
                                                  int64_t norm) {
  const auto terms = operands_of_sum(matcher, add);
  if (!terms) return std::nullopt;
  const View &a = matcher.view(terms->first), &b = matcher.view(terms->second);
  const View& sum = matcher.view(matcher.result(add));
  const bool fits = is_contiguous(a) && is_contiguous(b) && is_contiguous(sum) &&
                    c10::promoteTypes(a.dtype, b.dtype) == sum.dtype &&
                    matcher.can_be_read_at(matcher.argument(norm, kWeight), norm, add) &&
                    matcher.can_be_read_at(matcher.argument(norm, kBias), norm, add);
  return fits ? terms : std::nullopt;
}

std::optional<Rewrite> forward(Matcher& matcher, int64_t index) {
  if (!matcher.is(index, "aten::native_layer_norm")) return std::nullopt;
  const ViewId x = matcher.argument(index, kX), weight = matcher.argument(index, kWeight),
               bias = matcher.argument(index, kBias);
  if (!is_over_last(matcher, matcher.constant(index, kShape), x)) return std::nullopt;
  const int64_t rows = rows_of(matcher.view(x));
  ViewId y = matcher.result(index), mean = matcher.result(index, 1),
         inverse = matcher.result(index, 2);
  if (y == kNone || !is_contiguous(matcher.view(y)) || !is_statistic(matcher, mean, rows) ||
      !is_statistic(matcher, inverse, rows) || weight == kNone) {
    return std::nullopt;
  }
  Rewrite change{.removed = {index}, .added = {}};
  if (const int64_t cast = narrowing_of(matcher, index, 0, true); cast != kNone) {
    change.removed.push_back(cast);
    y = matcher.reshaped(matcher.result(cast),
                         matcher.view(y).sizes);  // The cast may be of a view.
  }
  ViewId first = x, second = kNone, sum = kNone;
  int64_t place = index;
  const auto takes = [&] {
    return kernel::takes_layer_norm(matcher.stand_in(first), matcher.stand_in(second),
                                    matcher.stand_in(weight), matcher.stand_in(bias),
                                    matcher.view(y).dtype);
  };
  const int64_t add = matcher.maker_of(x);
  if (const auto terms = terms_of(matcher, add, index)) {
    first = terms->first;
    second = terms->second;
    if (takes()) {
      change.removed.push_back(add);
      sum = matcher.result(add);
      place = add;
    } else {
      first = x;
      second = kNone;
    }
  }
  if (!takes()) return std::nullopt;
  Node node{
      .op = kernel::layer_norm_operator(),
      .arguments = {Operand::of(first), Operand::of(second), Operand::of(weight), Operand::of(bias),
                    matcher.node(index).arguments[kEps], Operand::of(c10::IValue(false)),
                    Operand::of(c10::IValue(static_cast<int64_t>(matcher.view(y).dtype))),
                    /*residual_bias=*/Operand::of(kNone)},
      .results = {Operand::of(y), Operand::of(sum), Operand::of(matcher.reshaped(mean, {rows})),
                  Operand::of(matcher.reshaped(inverse, {rows}))}};
  change.added.emplace_back(place, std::move(node));
  return change;
}

// What is added to the gradient, and where.
struct Join {
  int64_t add = kNone;
  ViewId other = kNone;
  int64_t place = kNone;  // Position of the kernel then.
};

// The only reader of dx, if it adds dx to another gradient of the sum.
Join join_of(const Matcher& matcher, int64_t index) {
  const ViewId dx = matcher.result(index);
  const auto readers = matcher.readers_of(dx);
  if (readers.size() != 1 || !matcher.is_only_read_by(dx, readers)) return {};
  const int64_t add = readers[0];
  const auto terms = operands_of_sum(matcher, add);
  if (!terms) return {};
  const bool first = matcher.maker_of(terms->first) == index;
  const ViewId own = first ? terms->first : terms->second,
               other = first ? terms->second : terms->first;
  if (matcher.maker_of(own) != index || matcher.maker_of(other) == index) return {};
  for (const ViewId tensor : {own, other, matcher.result(add)}) {
    const View& view = matcher.view(tensor);
    if (!is_contiguous(view) || view.sizes != matcher.view(dx).sizes ||
        view.dtype != matcher.view(dx).dtype) {
      return {};
    }
  }
  if (matcher.can_be_read_at(other, add, index)) return {add, other, index};
  // If `other` is computed after dx, the kernel moves to the addition if nothing reads it before.
  for (const size_t number : {1, 2}) {
    const ViewId row = matcher.result(index, number);
    if (row != kNone && !matcher.is_untouched_between(row, index, add)) return {};
  }
  for (const size_t number : {kDy, kSum, kMean, kInverse, kGradientWeight}) {
    if (!matcher.can_be_read_at(matcher.argument(index, number), index, add)) return {};
  }
  return {add, other, add};
}

std::optional<Rewrite> backward(Matcher& matcher, int64_t index) {
  if (!matcher.is(index, "aten::native_layer_norm_backward")) return std::nullopt;
  const ViewId sum = matcher.argument(index, kSum),
               weight = matcher.argument(index, kGradientWeight);
  ViewId mean = matcher.argument(index, kMean), inverse = matcher.argument(index, kInverse);
  if (!is_over_last(matcher, matcher.constant(index, kGradientShape), sum)) return std::nullopt;
  const int64_t rows = rows_of(matcher.view(sum));
  ViewId dy = matcher.argument(index, kDy), dx = matcher.result(index);
  if (dy == kNone || dx == kNone || weight == kNone || !is_contiguous(matcher.view(dx)) ||
      matcher.view(dx).dtype != matcher.view(sum).dtype || !is_statistic(matcher, mean, rows) ||
      !is_statistic(matcher, inverse, rows)) {
    return std::nullopt;
  }
  Rewrite change{.removed = {index}, .added = {}};
  const auto takes = [&](ViewId gradient) {
    return kernel::takes_layer_norm(matcher.stand_in(sum), matcher.stand_in(gradient),
                                    matcher.stand_in(weight), {}, c10::kFloat);
  };
  // The kernel casts to fp32 itself.
  const int64_t cast = matcher.maker_of(dy);
  if (is_plain_cast(matcher, cast) && is_contiguous(matcher.view(dy)) &&
      matcher.view(dy).dtype == c10::kFloat && matcher.is_only_read_by(dy, {index})) {
    const ViewId narrow = matcher.reshaped(matcher.argument(cast, 0), matcher.view(sum).sizes);
    if (takes(narrow) && matcher.can_be_read_at(narrow, cast, index)) {
      dy = narrow;
      change.removed.push_back(cast);
    }
  }
  if (!takes(dy)) return std::nullopt;
  Join join = join_of(matcher, index);
  if (join.place != kNone && !matcher.can_be_read_at(dy, index, join.place)) join = {};
  if (join.add != kNone) change.removed.push_back(join.add);
  const int64_t last = join.add == kNone ? index : join.add;
  const int64_t narrowing = narrowing_of(matcher, last, 0, false);
  ViewId narrow = kNone;
  if (narrowing != kNone) {
    change.removed.push_back(narrowing);
    narrow = matcher.reshaped(matcher.result(narrowing), matcher.view(dx).sizes);
  }
  const auto& results = matcher.node(index).results;
  Node node{
      .op = kernel::layer_norm_backward_operator(),
      .arguments = {Operand::of(dy), Operand::of(join.other), Operand::of(sum),
                    Operand::of(matcher.reshaped(mean, {rows})),
                    Operand::of(matcher.reshaped(inverse, {rows})), Operand::of(weight),
                    Operand::of(c10::IValue(false)), Operand::of(c10::IValue(narrowing != kNone)),
                    /*residual_bias=*/Operand::of(c10::IValue(false))},
      .results = {matcher.node(last).results[0], Operand::of(narrow), results[1], results[2],
                  Operand::of(kNone)}};
  change.added.emplace_back(join.place == kNone ? index : join.place, std::move(node));
  return change;
}

}  // namespace

void layer_norms(Graph& graph) {
  rewrite_all(graph, [](Matcher& matcher, int64_t index) {
    auto change = forward(matcher, index);
    if (!change) change = backward(matcher, index);
    return change;
  });
}

}  // namespace gallop::compile::passes
