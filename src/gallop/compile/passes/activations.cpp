#include <algorithm>
#include <numeric>

#include "gallop/compile/passes/matcher.h"
#include "gallop/compile/passes/passes.h"
#include "gallop/kernel/activation.h"
#include "gallop/kernel/isa.h"
#include "gallop/kernel/operators.h"

namespace gallop::compile::passes {

namespace {

using kernel::Activation;

// From this number of elements on, the bias moves from addmm to the activation, as LibTorch would
// add it in a separate pass.
constexpr int64_t kFew = 100'000;

std::optional<Activation> gelu_of(const c10::IValue& approximate) {
  if (approximate.toStringRef() == "none") return Activation::kGelu;
  if (approximate.toStringRef() == "tanh") return Activation::kGeluTanh;
  return std::nullopt;
}

std::optional<Activation> forward_kind(const Matcher& matcher, int64_t index) {
  if (matcher.is(index, "aten::gelu")) return gelu_of(matcher.constant(index, 1));
  if (matcher.is(index, "aten::silu")) return Activation::kSilu;
  if (matcher.is(index, "aten::relu")) return Activation::kRelu;
  return std::nullopt;
}

// The gradient of ReLU takes y, which is positive where x is.
std::optional<Activation> backward_kind(const Matcher& matcher, int64_t index) {
  if (matcher.is(index, "aten::gelu_backward")) return gelu_of(matcher.constant(index, 2));
  if (matcher.is(index, "aten::silu_backward")) return Activation::kSilu;
  return is_relu_backward(matcher, index) ? std::optional(Activation::kRelu) : std::nullopt;
}

// The same memory with its dimensions sorted by stride.
ViewId in_order_of_memory(Matcher& matcher, ViewId tensor) {
  View of = matcher.view(tensor);
  std::vector<size_t> order(of.sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return of.sizes[a] != 1 && of.sizes[b] != 1 && of.strides[a] > of.strides[b];
  });
  View ordered = of;
  for (size_t i = 0; i < order.size(); ++i) {
    ordered.sizes[i] = of.sizes[order[i]];
    ordered.strides[i] = of.strides[order[i]];
  }
  return matcher.intern(is_contiguous(of) ? of : ordered);
}

bool takes(const Matcher& matcher, ViewId x, ViewId bias = kNone) {
  return kernel::takes_activation(matcher.stand_in(x), matcher.stand_in(bias));
}

std::optional<Rewrite> forward(Matcher& matcher, int64_t index) {
  const auto kind = forward_kind(matcher, index);
  if (!kind) return std::nullopt;
  const ViewId x = matcher.argument(index, 0), y = matcher.result(index);
  if (x == kNone || y == kNone || !is_laid_out_alike(matcher.view(x), matcher.view(y)) ||
      matcher.view(x).dtype != matcher.view(y).dtype) {
    return std::nullopt;
  }
  const ViewId input = in_order_of_memory(matcher, x);
  if (!takes(matcher, input)) return std::nullopt;
  Node node{.op = kernel::activation_operator(),
            .arguments = {Operand::of(c10::IValue(static_cast<int64_t>(*kind))), Operand::of(input),
                          no_tensor()},
            .results = {Operand::of(in_order_of_memory(matcher, y))}};
  return Rewrite{.removed = {index}, .added = {{index, std::move(node)}}};
}

std::optional<Rewrite> backward(Matcher& matcher, int64_t index) {
  const auto kind = backward_kind(matcher, index);
  if (!kind) return std::nullopt;
  const ViewId dy = matcher.argument(index, 0), x = matcher.argument(index, 1),
               dx = matcher.result(index);
  if (dy == kNone || x == kNone || dx == kNone) return std::nullopt;
  for (const ViewId other : {dy, dx}) {
    if (!is_laid_out_alike(matcher.view(x), matcher.view(other)) ||
        matcher.view(x).dtype != matcher.view(other).dtype) {
      return std::nullopt;
    }
  }
  const ViewId input = in_order_of_memory(matcher, x);
  if (!takes(matcher, input) || !takes(matcher, in_order_of_memory(matcher, dy))) {
    return std::nullopt;
  }
  Rewrite rewrite{.removed = {index}, .added = {}};
  ViewId sums = kNone;
  if (const int64_t sum = column_sums_of(matcher, dx); sum != kNone) {
    rewrite.removed.push_back(sum);
    sums = matcher.result(sum);
    if (const int64_t cast = widening_of(matcher, sum); cast != kNone) {
      rewrite.removed.push_back(cast);
      sums = matcher.result(cast);
    }
    sums = matcher.reshaped(sums, {matcher.view(x).sizes.back()});
  }
  const auto format =
      sums == kNone ? c10::IValue() : c10::IValue(static_cast<int64_t>(matcher.view(sums).dtype));
  Node node{.op = kernel::activation_backward_operator(),
            .arguments = {Operand::of(c10::IValue(static_cast<int64_t>(*kind))),
                          Operand::of(in_order_of_memory(matcher, dy)), Operand::of(input),
                          no_tensor(), Operand::of(format)},
            .results = {Operand::of(in_order_of_memory(matcher, dx)), Operand::of(sums)}};
  rewrite.added.emplace_back(index, std::move(node));
  return rewrite;
}

// The operands of an addition of a bias [C] to a matrix; `matrix` is kNone for a GEMM with a bias.
struct BiasedSum {
  ViewId matrix = kNone, bias = kNone;
};

std::optional<BiasedSum> biased_sum(const Matcher& matcher, int64_t maker) {
  BiasedSum found;
  if (matcher.is(maker, "aten::add.Tensor") && is_one(matcher, maker, 2)) {
    found = {matcher.argument(maker, 0), matcher.argument(maker, 1)};
    if (found.matrix == kNone || !is_contiguous(matcher.view(found.matrix)) ||
        matcher.view(found.matrix).sizes != matcher.view(matcher.result(maker)).sizes ||
        matcher.view(found.matrix).dtype != matcher.view(matcher.result(maker)).dtype) {
      return std::nullopt;
    }
  } else if (matcher.is(maker, "aten::addmm") && is_one(matcher, maker, 3) &&
             is_one(matcher, maker, 4) && matcher.view(matcher.result(maker)).numel() >= kFew) {
    found = {kNone, matcher.argument(maker, 0)};
  }
  if (found.bias == kNone || matcher.view(found.bias).sizes.size() != 1) return std::nullopt;
  return found;
}

// The GEMM of addmm() without its bias.
Node product(const Matcher& matcher, int64_t addmm, ViewId made) {
  const auto& arguments = matcher.node(addmm).arguments;
  return Node{.op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::mm", ""),
              .arguments = {arguments[1], arguments[2]},
              .results = {Operand::of(made)}};
}

// Fuses the addition of a bias with the activation and with its gradient.
std::optional<Rewrite> take_bias(Matcher& matcher, int64_t index) {
  if (!matcher.is(index, "gallop::activation") || matcher.argument(index, 2) != kNone) {
    return std::nullopt;
  }
  const ViewId x = matcher.argument(index, 1);
  const int64_t maker = matcher.maker_of(x);
  const auto sum = biased_sum(matcher, maker);
  if (!sum || matcher.view(x).sizes.back() != matcher.view(sum->bias).sizes[0]) {
    return std::nullopt;
  }
  const auto readers = matcher.readers_of(x);
  const ViewId bias = unconverted(matcher, sum->bias, readers.back());
  const View sums = matcher.view(matcher.result(maker));
  const ViewId made = sum->matrix == kNone ? matcher.fresh(sums.sizes, sums.dtype) : sum->matrix;
  const ViewId input = matcher.reshaped(made, matcher.view(x).sizes);
  if (!matcher.is_only_read_by(x, readers) || !takes(matcher, input, bias)) return std::nullopt;
  Rewrite rewrite{.removed = {maker}, .added = {}};
  for (const int64_t reader : readers) {
    const bool is_gradient = matcher.is(reader, "gallop::activation_backward");
    const size_t place = is_gradient ? 2 : 1;
    if ((reader != index && !is_gradient) || matcher.argument(reader, place) != x ||
        matcher.argument(reader, place + 1) != kNone ||
        matcher.constant(reader, 0) != matcher.constant(index, 0) ||
        !matcher.can_be_read_at(sum->matrix, maker, reader) ||
        !matcher.can_be_read_at(sum->bias, maker, reader)) {
      return std::nullopt;
    }
    Node node = matcher.node(reader);
    node.arguments[place] = Operand::of(input);
    node.arguments[place + 1] = Operand::of(bias);
    rewrite.removed.push_back(reader);
    rewrite.added.emplace_back(reader, std::move(node));
  }
  if (sum->matrix == kNone) rewrite.added.emplace_back(maker, product(matcher, maker, made));
  return rewrite;
}

}  // namespace

void activations(Graph& graph) {
  rewrite_all(graph, [](Matcher& matcher, int64_t index) {
    auto rewrite = forward(matcher, index);
    if (!rewrite) rewrite = backward(matcher, index);
    return rewrite;
  });
  rewrite_all(graph, take_bias);
}

}  // namespace gallop::compile::passes
