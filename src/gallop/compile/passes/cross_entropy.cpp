#include "gallop/kernel/cross_entropy.h"

#include <algorithm>
#include <cmath>

#include "gallop/compile/passes/matcher.h"
#include "gallop/compile/passes/passes.h"
#include "gallop/kernel/operators.h"

namespace gallop::compile::passes {

namespace {

// Arguments of aten::nll_loss_forward; its gradient has `gradient` as an additional first one.
enum Loss : size_t { kLogs, kTarget, kWeight, kReduction, kIgnored };

constexpr int64_t kMean = 1, kSum = 2;

// Softmax cross-entropy of logits [N, C] as LibTorch's operators compute it; kNone if absent.
struct Found {
  int64_t logs = kNone, loss = kNone, loss_gradient = kNone, logs_gradient = kNone;
  ViewId logits = kNone, target = kNone;
  bool mean = false;
  int64_t ignored = 0;
  double smoothing = 0;
  ViewId count = kNone;     // Number of targets that are not ignored, if known.
  int64_t result = kNone;   // The node that computes the loss.
  ViewId gradient = kNone;  // Gradient of the loss.
  ViewId dlogits = kNone;
  std::vector<int64_t> removed;
};

bool is_row_wise(const Matcher& matcher, const c10::IValue& dimension, ViewId logits) {
  return logits != kNone && matcher.view(logits).sizes.size() == 2 &&
         (dimension.toInt() == 1 || dimension.toInt() == -1);
}

bool is_absent(const Matcher& matcher, int64_t node, size_t number) {
  return matcher.argument(node, number) == kNone && !matcher.constant(node, number).isTensor();
}

// The only reader that calls `op`; kNone if there is none or more than one.
int64_t reader_calling(const Matcher& matcher, ViewId tensor, std::string_view op) {
  int64_t found = kNone;
  for (const int64_t reader : matcher.readers_of(tensor)) {
    if (!matcher.is(reader, op)) continue;
    if (found != kNone) return kNone;
    found = reader;
  }
  return found;
}

// The only reader of the node's result, if it calls `op`.
int64_t next(const Matcher& matcher, int64_t node, std::string_view op) {
  if (node == kNone) return kNone;
  const ViewId made = matcher.result(node);
  const int64_t reader = reader_calling(matcher, made, op);
  return reader != kNone && matcher.is_only_read_by(made, {reader}) ? reader : kNone;
}

int64_t maker(const Matcher& matcher, ViewId tensor, std::string_view op) {
  const int64_t node = matcher.maker_of(tensor);
  return matcher.is(node, op) ? node : kNone;
}

bool is_number(const c10::IValue& value, double wanted) {
  return value.isScalar() && std::abs(value.toScalar().toDouble() - wanted) <= 1e-12;
}

// Whether the mask selects the ignored targets.
bool masks_ignored(const Matcher& matcher, ViewId mask, const Found& found) {
  const int64_t equal = maker(matcher, mask, "aten::eq.Scalar");
  return equal != kNone && matcher.argument(equal, 0) == found.target &&
         is_number(matcher.constant(equal, 1), static_cast<double>(found.ignored));
}

bool find_forward(const Matcher& matcher, int64_t index, Found& found) {
  if (!matcher.is(index, "aten::nll_loss_forward") || !is_absent(matcher, index, kWeight))
    return false;
  found.loss = found.result = index;
  found.logs = maker(matcher, matcher.argument(index, kLogs), "aten::_log_softmax");
  found.target = matcher.argument(index, kTarget);
  const int64_t reduction = matcher.constant(index, kReduction).toInt();
  if (found.logs == kNone || found.target == kNone || (reduction != kMean && reduction != kSum))
    return false;
  found.mean = reduction == kMean;
  found.ignored = matcher.constant(index, kIgnored).toInt();
  found.logits = matcher.argument(found.logs, 0);
  found.removed = {index, found.logs};
  return is_row_wise(matcher, matcher.constant(found.logs, 1), found.logits) &&
         !matcher.constant(found.logs, 2).toBool();
}

// Finds label smoothing: the loss times 1 - s plus s times the mean over the classes.
bool find_smoothing(const Matcher& matcher, Found& found) {
  const ViewId logs = matcher.result(found.logs);
  const int64_t sums = reader_calling(matcher, logs, "aten::sum.dim_IntList");
  if (sums == kNone) return true;
  const auto& dimensions = matcher.constant(sums, 1);
  if (!dimensions.isIntList() || dimensions.toIntVector() != std::vector<int64_t>{1}) return false;
  const int64_t negative = next(matcher, sums, "aten::neg");
  const int64_t masked = next(matcher, negative, "aten::masked_fill.Scalar");
  const int64_t sum = next(matcher, masked, "aten::sum");
  int64_t last = sum;
  if (found.mean) {
    last = next(matcher, sum, "aten::div.Tensor");
    if (last == kNone) return false;
    found.count = matcher.argument(last, 1);
  }
  const int64_t share = next(matcher, last, "aten::mul.Scalar"),
                rest = next(matcher, found.loss, "aten::mul.Scalar");
  const int64_t add = next(matcher, share, "aten::add.Tensor");
  if (rest == kNone || add == kNone || next(matcher, rest, "aten::add.Tensor") != add ||
      !operands_of_sum(matcher, add) || !is_number(matcher.constant(masked, 2), 0) ||
      (found.mean && found.count == kNone)) {
    return false;
  }
  if (!masks_ignored(matcher, matcher.argument(masked, 1), found)) return false;
  found.smoothing = 1 - matcher.constant(rest, 1).toScalar().toDouble();
  const auto classes = static_cast<double>(matcher.view(found.logits).sizes[1]);
  if (!is_number(matcher.constant(share, 1), found.smoothing / classes)) return false;
  found.result = add;
  for (const int64_t node : {sums, negative, masked, sum, share, rest, add})
    found.removed.push_back(node);
  if (found.mean) found.removed.push_back(last);
  return true;
}

// Whether the count in the smoothed mean is the number of targets that are not masked.
bool counts_targets(const Matcher& matcher, const Found& found) {
  if (found.count == kNone) return true;
  const int64_t sum = maker(matcher, found.count, "aten::sum");
  if (sum == kNone) return false;
  const int64_t inverted = maker(matcher, matcher.argument(sum, 0), "aten::bitwise_not");
  if (inverted == kNone) return false;
  return masks_ignored(matcher, matcher.argument(inverted, 0), found);
}

// The node that computes a value, possibly through views, whose only reader is `reader`.
int64_t before(const Matcher& matcher, ViewId tensor, int64_t reader, std::string_view op) {
  const int64_t node = matcher.source_of(tensor);
  return matcher.is(node, op) && matcher.is_only_read_by(tensor, {reader}) ? node : kNone;
}

// Finds the term that smoothing adds to the gradient: for each class of a row that is not ignored,
// minus the loss gradient times s / C. The other term is the gradient of the loss times 1 - s.
bool find_smoothing_gradient(const Matcher& matcher, Found& found) {
  const ViewId dlogs = matcher.argument(found.logs_gradient, 0);
  const int64_t add = before(matcher, dlogs, found.logs_gradient, "aten::add.Tensor");
  const auto terms = operands_of_sum(matcher, add);
  if (!terms) return false;
  const bool first = matcher.maker_of(terms->first) == found.loss_gradient;
  const ViewId own = first ? terms->first : terms->second,
               spread = first ? terms->second : terms->first;
  const int64_t negative = before(matcher, spread, add, "aten::neg");
  if (matcher.maker_of(own) != found.loss_gradient || negative == kNone ||
      !matcher.is_only_read_by(own, {add}) || matcher.view(spread).strides[1] != 0) {
    return false;
  }
  const ViewId rows = matcher.argument(negative, 0);
  const int64_t masked = before(matcher, rows, negative, "aten::masked_fill.Scalar");
  if (masked == kNone || !is_number(matcher.constant(masked, 2), 0) ||
      !masks_ignored(matcher, matcher.argument(masked, 1), found)) {
    return false;
  }
  int64_t reader = masked;
  ViewId share = matcher.argument(masked, 0);
  found.removed.insert(found.removed.end(), {add, negative, masked});
  if (found.mean) {
    const int64_t divided = before(matcher, share, masked, "aten::div.Tensor");
    if (divided == kNone || matcher.argument(divided, 1) != found.count) return false;
    found.removed.push_back(divided);
    reader = divided;
    share = matcher.argument(divided, 0);
  }
  const int64_t part = before(matcher, share, reader, "aten::mul.Scalar"),
                rest = before(matcher, found.gradient, found.loss_gradient, "aten::mul.Scalar");
  if (part == kNone || rest == kNone || matcher.argument(part, 0) != matcher.argument(rest, 0))
    return false;
  const auto classes = static_cast<double>(matcher.view(found.logits).sizes[1]);
  found.gradient = matcher.argument(rest, 0);
  found.removed.insert(found.removed.end(), {part, rest});
  return is_number(matcher.constant(part, 1), found.smoothing / classes) &&
         is_number(matcher.constant(rest, 1), 1 - found.smoothing);
}

bool find_gradient(const Matcher& matcher, Found& found) {
  const ViewId logs = matcher.result(found.logs);
  found.loss_gradient = reader_calling(matcher, logs, "aten::nll_loss_backward");
  found.logs_gradient = reader_calling(matcher, logs, "aten::_log_softmax_backward_data");
  if (found.loss_gradient == kNone && found.logs_gradient == kNone) return true;
  if (found.loss_gradient == kNone || found.logs_gradient == kNone) return false;
  const int64_t node = found.loss_gradient;
  found.gradient = matcher.argument(node, 0);
  found.dlogits = matcher.result(found.logs_gradient);
  const bool fits =
      found.gradient != kNone && matcher.argument(node, 1 + kTarget) == found.target &&
      is_absent(matcher, node, 1 + kWeight) && matcher.argument(found.logs_gradient, 1) == logs &&
      is_row_wise(matcher, matcher.constant(found.logs_gradient, 2), found.logits);
  if (!fits) return false;
  found.removed.insert(found.removed.end(), {node, found.logs_gradient});
  if (found.smoothing != 0) return find_smoothing_gradient(matcher, found);
  const ViewId dlogs = matcher.result(node);
  return matcher.maker_of(matcher.argument(found.logs_gradient, 0)) == node &&
         matcher.is_only_read_by(dlogs, {found.logs_gradient});
}

// Skips the cast of bf16 logits to fp32 if their gradient is cast to bf16 as well.
void take_narrow(Matcher& matcher, Found& found) {
  const int64_t widening = matcher.maker_of(found.logits);
  if (!is_plain_cast(matcher, widening) || !matcher.is_only_read_by(found.logits, {found.logs}))
    return;
  const ViewId narrow = matcher.argument(widening, 0);
  const int64_t last = found.logs_gradient == kNone ? found.loss : found.logs_gradient;
  if (matcher.view(narrow).dtype != c10::kBFloat16 || !is_contiguous(matcher.view(narrow)) ||
      matcher.view(narrow).sizes != matcher.view(found.logits).sizes ||
      !matcher.can_be_read_at(narrow, widening, last)) {
    return;
  }
  if (found.logs_gradient != kNone) {
    const auto readers = matcher.readers_of(found.dlogits);
    if (readers.size() != 1 || !is_plain_cast(matcher, readers[0]) ||
        !matcher.is_only_read_by(found.dlogits, readers) ||
        matcher.view(matcher.result(readers[0])).dtype != c10::kBFloat16) {
      return;
    }
    found.removed.push_back(readers[0]);
    found.dlogits = matcher.reshaped(matcher.result(readers[0]), matcher.view(narrow).sizes);
  }
  found.removed.push_back(widening);
  found.logits = narrow;
}

c10::OperatorHandle aten(const char* name, const char* overload) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
}

// Inserts a count of the targets that are not ignored before the node `place`.
ViewId count_targets(Matcher& matcher, const Found& found, int64_t place, Rewrite& change) {
  if (found.count != kNone) return found.count;
  const ViewId counts = matcher.fresh(matcher.view(found.target).sizes, c10::kBool, found.logits),
               count = matcher.fresh({}, c10::kLong, found.logits);
  change.added.emplace_back(
      place, Node{.op = aten("aten::ne", "Scalar"),
                  .arguments = {Operand::of(found.target), Operand::of(c10::IValue(found.ignored))},
                  .results = {Operand::of(counts)}});
  change.added.emplace_back(place,
                            Node{.op = aten("aten::sum", ""),
                                 .arguments = {Operand::of(counts), Operand::of(c10::IValue())},
                                 .results = {Operand::of(count)}});
  return count;
}

Node quotient(ViewId dividend, ViewId divisor, ViewId result) {
  return Node{.op = aten("aten::div", "Tensor"),
              .arguments = {Operand::of(dividend), Operand::of(divisor)},
              .results = {Operand::of(result)}};
}

Rewrite rewrite(Matcher& matcher, const Found& found) {
  Rewrite change{.removed = found.removed, .added = {}};
  const auto ignored = Operand::of(c10::IValue(found.ignored)),
             smoothing = Operand::of(c10::IValue(found.smoothing));
  const ViewId loss = matcher.result(found.result);
  const ViewId rows =
      matcher.fresh({matcher.view(found.logits).sizes[0], 2}, c10::kFloat, found.logits);
  const ViewId sum = found.mean ? matcher.fresh({}, c10::kFloat, found.logits) : loss;
  change.added.emplace_back(
      found.result,
      Node{.op = kernel::cross_entropy_operator(),
           .arguments = {Operand::of(found.logits), Operand::of(found.target), ignored, smoothing},
           .results = {Operand::of(sum), no_tensor(), Operand::of(rows)}});
  ViewId count = kNone;
  if (found.mean) {
    count = count_targets(matcher, found, found.result, change);
    change.added.emplace_back(found.result, quotient(sum, count, loss));
  }
  if (found.logs_gradient == kNone) return change;
  ViewId gradient = found.gradient;
  if (found.mean) {
    gradient = matcher.fresh({}, c10::kFloat, found.logits);
    change.added.emplace_back(found.logs_gradient, quotient(found.gradient, count, gradient));
  }
  change.added.emplace_back(
      found.logs_gradient,
      Node{.op = kernel::cross_entropy_backward_operator(),
           .arguments = {Operand::of(gradient), Operand::of(found.logits),
                         Operand::of(found.target), Operand::of(rows), ignored, smoothing},
           .results = {Operand::of(found.dlogits)}});
  return change;
}

// Whether only removed nodes read removed values, and others are unchanged where they are read.
bool can_go(const Matcher& matcher, const Found& found) {
  const ViewId loss = matcher.result(found.loss), weight = matcher.result(found.loss, 1);
  const int64_t last = found.logs_gradient == kNone ? found.result : found.logs_gradient;
  return matcher.is_only_read_by(matcher.result(found.logs), found.removed) &&
         (found.result == found.loss || matcher.is_only_read_by(loss, found.removed)) &&
         (weight == kNone || matcher.is_only_read_by(weight, found.removed)) &&
         matcher.can_be_read_at(found.logits, found.logs, last) &&
         matcher.can_be_read_at(found.target, found.loss, last) &&
         (found.count == kNone || matcher.source_of(found.count) != kNone) &&
         (found.gradient == kNone ||
          matcher.can_be_read_at(found.gradient, found.loss_gradient, last));
}

bool is_taken(const Matcher& matcher, const Found& found) {
  const View& loss = matcher.view(matcher.result(found.result));
  const bool numbers =
      loss.sizes.empty() && loss.dtype == c10::kFloat &&
      (found.gradient == kNone || (matcher.view(found.gradient).numel() == 1 &&
                                   matcher.view(found.gradient).dtype == c10::kFloat));
  if (!numbers || matcher.view(found.target).dtype != c10::kLong) return false;
  if (found.dlogits != kNone &&
      (!is_laid_out_alike(matcher.view(found.dlogits), matcher.view(found.logits)) ||
       matcher.view(found.dlogits).dtype != matcher.view(found.logits).dtype)) {
    return false;
  }
  return kernel::takes_cross_entropy(matcher.stand_in(found.logits),
                                     matcher.stand_in(found.target));
}

std::optional<Rewrite> match(Matcher& matcher, int64_t index) {
  Found found;
  if (!find_forward(matcher, index, found) || !find_smoothing(matcher, found) ||
      !counts_targets(matcher, found) || !find_gradient(matcher, found) ||
      !can_go(matcher, found)) {
    return std::nullopt;
  }
  take_narrow(matcher, found);
  if (!is_taken(matcher, found)) return std::nullopt;
  return rewrite(matcher, found);
}

}  // namespace

void cross_entropy(Graph& graph) { rewrite_all(graph, match); }

}  // namespace gallop::compile::passes
