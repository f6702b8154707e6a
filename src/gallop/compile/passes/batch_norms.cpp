#include <algorithm>
#include <array>
#include <string_view>

#include "gallop/compile/passes/matcher.h"
#include "gallop/compile/passes/passes.h"
#include "gallop/kernel/batch_norm.h"
#include "gallop/kernel/operators.h"

namespace gallop::compile::passes {

namespace {

// Arguments of aten::native_batch_norm and of its gradient.
enum Norm : size_t { kX, kWeight, kBias, kRunningMean, kRunningVar, kTraining, kMomentum, kEps };
enum Gradient : size_t { kDy, kGradientX, kGradientWeight, kTrain = 7 };

using kernel::BatchNormActivation;

// Batch norm with subsequent operators and the calls of its gradient; kNone if absent.
struct Found {
  int64_t norm = kNone, add = kNone, activation = kNone;
  BatchNormActivation kind = BatchNormActivation::kNone;
  ViewId residual = kNone;
  int64_t gradient = kNone, activation_gradient = kNone, join = kNone;
  int64_t copy = kNone;         // Copy of the activation's input, for its gradient.
  bool wants_residual = false;  // Whether others read the gradient after the activation's.
  ViewId dy = kNone, more_dy = kNone;

  int64_t last() const { return activation != kNone ? activation : before_activation(); }
  int64_t before_activation() const { return add != kNone ? add : norm; }
  int64_t first_gradient() const {
    return activation_gradient != kNone ? activation_gradient : gradient;
  }
};

// Activations whose gradients read their input. ReLU's reads the result.
struct ActivationForm {
  std::string_view function, gradient;
  BatchNormActivation kind;
};
constexpr std::array<ActivationForm, 3> kForms = {
    {{"aten::silu", "aten::silu_backward", BatchNormActivation::kSilu},
     {"aten::hardswish", "aten::hardswish_backward", BatchNormActivation::kHardswish},
     {"aten::hardtanh", "aten::hardtanh_backward", BatchNormActivation::kRelu6}}};

bool is_like(const Matcher& matcher, ViewId tensor, ViewId x) {
  return tensor != kNone && is_laid_out_alike(matcher.view(tensor), matcher.view(x)) &&
         matcher.view(tensor).dtype == matcher.view(x).dtype;
}

bool has_shape_of(const Matcher& matcher, ViewId tensor, ViewId x) {
  return matcher.view(tensor).sizes == matcher.view(x).sizes &&
         matcher.view(tensor).dtype == matcher.view(x).dtype;
}

bool is_row(const Matcher& matcher, ViewId tensor, ViewId x) {
  if (tensor == kNone) return false;
  const View& view = matcher.view(tensor);
  return view.dtype == c10::kFloat && view.sizes.size() == 1 && is_contiguous(view) &&
         view.sizes[0] == matcher.view(x).sizes[1];
}

bool is_taken(const Matcher& matcher, int64_t norm) {
  const ViewId x = matcher.argument(norm, kX);
  if (x == kNone || !matcher.constant(norm, kTraining).toBool() ||
      !kernel::takes_batch_norm(matcher.stand_in(x))) {
    return false;
  }
  for (const size_t row : {kWeight, kBias, kRunningMean, kRunningVar}) {
    if (!is_row(matcher, matcher.argument(norm, row), x)) return false;
  }
  return is_like(matcher, matcher.result(norm), x);
}

// The only reader of the saved statistics, which must be the gradient: kNone if there are no
// readers, nothing if the statistics have other uses.
std::optional<int64_t> gradient_of(const Matcher& matcher, int64_t norm) {
  int64_t found = kNone;
  for (const size_t saved : {1, 2}) {
    const ViewId row = matcher.result(norm, saved);
    if (matcher.is_output(row)) return std::nullopt;
    for (const int64_t reader : matcher.readers_of(row)) {
      if (found != kNone && reader != found) return std::nullopt;
      found = reader;
    }
  }
  if (found == kNone) return found;
  const ViewId x = matcher.argument(norm, kX);
  const bool fits = matcher.is(found, "aten::native_batch_norm_backward") &&
                    matcher.argument(found, kGradientX) == x &&
                    matcher.argument(found, kGradientWeight) == matcher.argument(norm, kWeight) &&
                    matcher.constant(found, kTrain).toBool();
  if (!fits) return std::nullopt;
  const ViewId dx = matcher.result(found);
  return dx == kNone || is_like(matcher, dx, x) ? std::optional(found) : std::nullopt;
}

// The only reader of the node's result.
int64_t only_reader(const Matcher& matcher, int64_t node) {
  const ViewId made = matcher.result(node);
  const auto readers = matcher.readers_of(made);
  return readers.size() == 1 && matcher.is_only_read_by(made, readers) ? readers[0] : kNone;
}

bool find_add(const Matcher& matcher, Found& found) {
  const int64_t add = only_reader(matcher, found.norm);
  const auto operands = operands_of_sum(matcher, add);
  const ViewId x = matcher.argument(found.norm, kX);
  if (!operands || !is_like(matcher, matcher.result(add), x)) return false;
  const auto [a, b] = *operands;
  const bool first = matcher.maker_of(a) == found.norm;
  if (first == (matcher.maker_of(b) == found.norm)) return false;
  found.add = add;
  found.residual = first ? b : a;
  return has_shape_of(matcher, found.residual, x) && is_like(matcher, first ? a : b, x);
}

bool find_relu(const Matcher& matcher, Found& found) {
  const int64_t relu = only_reader(matcher, found.before_activation());
  if (!matcher.is(relu, "aten::relu") ||
      matcher.maker_of(matcher.argument(relu, 0)) != found.before_activation() ||
      !is_like(matcher, matcher.result(relu), matcher.argument(found.norm, kX))) {
    return false;
  }
  found.activation = relu;
  found.kind = BatchNormActivation::kRelu;
  return true;
}

// Whether the arguments from `first` on are the limits of ReLU6, if it is one.
bool has_limits(const Matcher& matcher, int64_t node, size_t first, BatchNormActivation kind) {
  if (kind != BatchNormActivation::kRelu6) return true;
  const auto is = [&](size_t argument, double value) {
    const c10::IValue& limit = matcher.constant(node, argument);
    return limit.isScalar() && limit.toScalar().toDouble() == value;
  };
  return is(first, 0) && is(first + 1, 6);
}

// Finds an activation whose gradient, if the norm has one, reads the norm's result or a copy of it.
bool find_activation(const Matcher& matcher, Found& found) {
  const ViewId z = matcher.result(found.norm), x = matcher.argument(found.norm, kX);
  const int64_t gradient = found.gradient == kNone
                               ? int64_t{kNone}
                               : matcher.maker_of(matcher.argument(found.gradient, kDy));
  const ViewId read = gradient == kNone ? ViewId{kNone} : matcher.argument(gradient, 1);
  std::vector<int64_t> readers;
  for (const int64_t reader : matcher.readers_of(z)) {
    if (matcher.is(reader, "aten::clone") && read != kNone && matcher.maker_of(read) == reader &&
        matcher.is_only_read_by(matcher.result(reader), {gradient})) {
      found.copy = reader;
    } else if (reader != gradient) {
      if (found.activation != kNone) return false;
      found.activation = reader;
    }
    readers.push_back(reader);
  }
  const auto form = std::find_if(kForms.begin(), kForms.end(), [&](const ActivationForm& one) {
    return matcher.is(found.activation, one.function);
  });
  if (form == kForms.end() || !matcher.is_only_read_by(z, readers) ||
      matcher.maker_of(matcher.argument(found.activation, 0)) != found.norm ||
      !is_like(matcher, matcher.result(found.activation), x) ||
      !has_limits(matcher, found.activation, 1, form->kind)) {
    return false;
  }
  found.kind = form->kind;
  if (found.gradient == kNone) return true;
  const int64_t source = found.copy != kNone ? found.copy : found.norm;
  const ViewId g = matcher.result(gradient);
  found.activation_gradient = gradient;
  return matcher.is(gradient, form->gradient) && matcher.maker_of(read) == source &&
         has_shape_of(matcher, read, x) && has_shape_of(matcher, g, x) &&
         has_limits(matcher, gradient, 2, form->kind) &&
         matcher.is_only_read_by(g, {found.gradient});
}

// Finds the gradient of the ReLU; the kernel must compute all that others read of it.
bool find_relu_gradient(const Matcher& matcher, Found& found) {
  const ViewId g = matcher.argument(found.gradient, kDy);
  const int64_t node = matcher.maker_of(g);
  const ViewId x = matcher.argument(found.norm, kX);
  if (!matcher.is(node, "aten::threshold_backward") || !is_like(matcher, g, x) ||
      matcher.maker_of(matcher.argument(node, 1)) != found.activation ||
      !matcher.constant(node, 2).isScalar() ||
      matcher.constant(node, 2).toScalar().toDouble() != 0) {
    return false;
  }
  found.activation_gradient = node;
  found.wants_residual = !matcher.is_only_read_by(g, {found.gradient});
  return !found.wants_residual || found.add != kNone;
}

// Finds the gradient of y, which may be the sum of two.
bool find_dy(const Matcher& matcher, Found& found) {
  const int64_t node = found.first_gradient();
  const ViewId x = matcher.argument(found.norm, kX);
  found.dy = matcher.argument(node, kDy);
  if (found.dy == kNone || !has_shape_of(matcher, found.dy, x)) return false;
  const int64_t join = matcher.maker_of(found.dy);
  const auto operands = operands_of_sum(matcher, join);
  if (!operands || !matcher.is_only_read_by(found.dy, {node})) return true;
  for (const ViewId part : {operands->first, operands->second}) {
    if (!has_shape_of(matcher, part, x) || !matcher.can_be_read_at(part, join, node)) return true;
  }
  found.join = join;
  found.dy = operands->first;
  found.more_dy = operands->second;
  return true;
}

// Whether all operands are unchanged at the positions where the kernels read them.
bool can_move(const Matcher& matcher, const Found& found) {
  if (found.add != kNone && !matcher.can_be_read_at(found.residual, found.add, found.last())) {
    return false;
  }
  for (const size_t input : {kX, kWeight, kBias}) {
    const ViewId tensor = matcher.argument(found.norm, input);
    if (!matcher.can_be_read_at(tensor, found.norm, found.last())) return false;
    if (found.gradient != kNone && !matcher.can_be_read_at(tensor, found.norm, found.gradient)) {
      return false;
    }
  }
  for (const size_t statistic : {kRunningMean, kRunningVar}) {
    const ViewId tensor = matcher.argument(found.norm, statistic);
    if (!matcher.is_untouched_between(tensor, found.norm, found.last())) return false;
  }
  return true;
}

Rewrite rewrite(Matcher& matcher, const Found& found) {
  const auto argument = [&](size_t number) { return matcher.node(found.norm).arguments[number]; };
  const ViewId x = matcher.argument(found.norm, kX);
  const int64_t channels = matcher.view(x).sizes[1];
  const bool keeps_signs =
      found.kind == BatchNormActivation::kRelu && found.add != kNone && found.gradient != kNone;
  const ViewId mean = matcher.fresh({channels}, c10::kDouble),
               inverse_deviation = matcher.fresh({channels}, c10::kDouble);
  ViewId positive = kNone;
  if (keeps_signs) {
    positive = matcher.fresh({kernel::batch_norm_sign_words(matcher.stand_in(x))}, c10::kShort);
  }
  const auto flag = [](bool value) { return Operand::of(c10::IValue(value)); };
  const Operand kind = Operand::of(c10::IValue(static_cast<int64_t>(found.kind)));
  Rewrite change;
  for (const int64_t node : {found.norm, found.add, found.copy, found.activation, found.gradient,
                             found.activation_gradient, found.join}) {
    if (node != kNone) change.removed.push_back(node);
  }
  change.added.emplace_back(
      found.last(),
      Node{.op = kernel::batch_norm_operator(),
           .arguments = {argument(kX), Operand::of(found.residual), argument(kWeight),
                         argument(kBias), argument(kRunningMean), argument(kRunningVar),
                         argument(kMomentum), argument(kEps), kind, flag(keeps_signs)},
           .results = {Operand::of(matcher.result(found.last())), Operand::of(mean),
                       Operand::of(inverse_deviation), Operand::of(positive)}});
  if (found.gradient == kNone) return change;
  const ViewId residual =
      found.wants_residual ? matcher.result(found.activation_gradient) : ViewId{kNone};
  const auto& results = matcher.node(found.gradient).results;
  change.added.emplace_back(
      found.first_gradient(),
      Node{.op = kernel::batch_norm_backward_operator(),
           .arguments = {Operand::of(found.dy), Operand::of(found.more_dy), argument(kX),
                         argument(kWeight), argument(kBias), Operand::of(mean),
                         Operand::of(inverse_deviation), Operand::of(positive), kind,
                         flag(found.wants_residual), flag(results[0].views[0] != kNone)},
           .results = {results[0], Operand::of(residual), results[1], results[2]}});
  return change;
}

std::optional<Rewrite> match_form(Matcher& matcher, Found found, bool with_add, bool with_relu) {
  if ((with_add && !find_add(matcher, found)) || (with_relu && !find_relu(matcher, found)))
    return std::nullopt;
  if (found.gradient != kNone &&
      ((with_relu && !find_relu_gradient(matcher, found)) || !find_dy(matcher, found))) {
    return std::nullopt;
  }
  if (!can_move(matcher, found)) return std::nullopt;
  return rewrite(matcher, found);
}

std::optional<Rewrite> match_activation(Matcher& matcher, Found found) {
  if (!find_activation(matcher, found)) return std::nullopt;
  if (found.gradient != kNone && !find_dy(matcher, found)) return std::nullopt;
  if (!can_move(matcher, found)) return std::nullopt;
  return rewrite(matcher, found);
}

std::optional<Rewrite> match(Matcher& matcher, int64_t index) {
  if (!matcher.is(index, "aten::native_batch_norm") || !is_taken(matcher, index))
    return std::nullopt;
  const auto gradient = gradient_of(matcher, index);
  if (!gradient) return std::nullopt;
  const Found found{.norm = index, .gradient = *gradient};
  if (auto change = match_activation(matcher, found)) return change;
  for (const auto& [with_add, with_relu] :
       {std::pair(true, true), {false, true}, {true, false}, {false, false}}) {
    if (auto change = match_form(matcher, found, with_add, with_relu)) return change;
  }
  return std::nullopt;
}

}  // namespace

void batch_norms(Graph& graph) { rewrite_all(graph, match); }

}  // namespace gallop::compile::passes
