#include "gallop/model/exported/random_operators.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <ATen/ops/ones.h>
#include <ATen/ops/zeros_like.h>

#include "gallop/model/exported/find_operator.h"
#include "gallop/model/exported/transitions.h"
#include "gallop/model/functional/attention_dropout.h"
#include "gallop/model/functional/dropout.h"

namespace gallop::model::exported {

namespace {

using torch::jit::Stack;

at::Tensor dropout(const Stack& stack, const DrawnPart& part) {
  const at::Tensor x = stack[0].toTensor();
  const double p = stack[1].toDouble();
  const bool training = stack[2].toBool();
  if (!part.shard) return functional::dropout(x, p, training);
  // In the order of memory, as for the whole tensor: a divided dimension lies within one of the
  // same stride, of which it may have a single element here.
  std::vector<int64_t> order = functional::memory_order(x);
  for (size_t i = 0; i + 1 < order.size(); ++i) {
    if (order[i] == part.shard->dim && x.stride(order[i]) == x.stride(order[i + 1])) {
      std::swap(order[i], order[i + 1]);
    }
  }
  const std::vector<int64_t> places = functional::places_in(order);
  const at::Tensor dense = x.permute(order);
  const Shard shard{places[static_cast<size_t>(part.shard->dim)], part.shard->group};
  return functional::dropout(dense, p, training, dropout_part(dense, shard, *part.group))
      .permute(places);
}

// All elements of a channel together: input [N, C, ...].
at::Tensor feature_dropout(const Stack& stack, const DrawnPart& part) {
  const at::Tensor input = stack[0].toTensor();
  const double p = stack[1].toDouble();
  if (!stack[2].toBool() || p == 0 || input.dim() < 2) return dropout(stack, part);
  std::vector<int64_t> sizes(static_cast<size_t>(input.dim()), 1);
  sizes[0] = input.size(0);
  sizes[1] = input.size(1);
  return input.mul(functional::dropout(at::ones(sizes, input.options()), p, /*training=*/true));
}

// 1 with probability p: what dropout leaves of ones. Models scale the samples that they keep.
at::Tensor bernoulli(const Stack& stack, const DrawnPart& /*part*/) {
  const at::Tensor self = stack[0].toTensor();
  const double p = stack[1].toDouble();
  if (p <= 0) return at::zeros_like(self);
  const at::Tensor ones = at::ones(self.sizes(), self.options().dtype(at::kFloat));
  const at::Tensor kept = functional::fixed_dropout(ones, 1 - p);
  return kept.gt(0).to(self.scalar_type());
}

at::Tensor attention(const Stack& stack, const DrawnPart& part) {
  functional::AttentionDropout options{.p = stack[4].toDouble(),
                                       .is_causal = stack[5].toBool(),
                                       .scale = stack[6].toOptional<double>()};
  if (stack[3].isTensor()) options.mask = stack[3].toTensor();
  if (part.shard) {
    options.part = [&part](const at::Tensor& weights) {
      return dropout_part(weights, *part.shard, *part.group);
    };
  }
  return functional::attention_with_dropout(stack[0].toTensor(), stack[1].toTensor(),
                                            stack[2].toTensor(), options);
}

constexpr std::array<RandomOperator, 7> kOperators = {
    {{.function = "aten::dropout", .overload = "", .run = dropout},
     {.function = "aten::dropout_", .overload = "", .run = dropout, .is_in_place = true},
     {.function = "aten::feature_dropout", .overload = "", .run = feature_dropout},
     {.function = "aten::feature_dropout_",
      .overload = "",
      .run = feature_dropout,
      .is_in_place = true},
     {.function = "aten::bernoulli", .overload = "p", .run = bernoulli},
     {.function = "aten::bernoulli_", .overload = "float", .run = bernoulli, .is_in_place = true},
     {.function = "aten::scaled_dot_product_attention",
      .overload = "",
      .run = attention,
      .is_fused_on_gpu = true}}};

// Attention without dropout is LibTorch's.
bool draws(const RandomOperator& random, const Stack& stack) {
  if (random.run != attention) return true;
  constexpr size_t kProbability = 4;
  return stack[kProbability].toDouble() > 0;
}

}  // namespace

const RandomOperator* find_random_operator(const Node& node, c10::Device device) {
  for (const RandomOperator& one : kOperators) {
    if (one.function != node.function || one.overload != node.overload) continue;
    return one.is_fused_on_gpu && device.is_cuda() ? nullptr : &one;
  }
  return nullptr;
}

bool draws(const Node& node) {
  for (const NamedArgument& input : node.inputs) {
    const auto* const subgraph = std::get_if<Subgraph>(&input.value);
    if (subgraph == nullptr) continue;
    const auto& nodes = subgraph->graph->nodes;
    if (std::any_of(nodes.begin(), nodes.end(), [](const Node& one) { return draws(one); })) {
      return true;
    }
  }
  const auto op = find_operator(node);
  if (!op || !op->hasTag(at::Tag::nondeterministic_seeded)) return false;
  const auto is_off = [](const NamedArgument& input) {
    return input.value == Argument(false) || input.value == Argument(0.0) ||
           input.value == Argument(int64_t{0});
  };
  const auto has = [&](std::string_view name, bool off) {
    return std::any_of(node.inputs.begin(), node.inputs.end(), [&](const NamedArgument& input) {
      return input.name == name && is_off(input) == off;
    });
  };
  if (node.function == "aten::scaled_dot_product_attention") return has("dropout_p", /*off=*/false);
  // Recurrent layers drop between their layers, with probability `dropout`.
  return !has("train", /*off=*/true) && !has("training", /*off=*/true) &&
         !has("dropout", /*off=*/true);
}

bool run_with_own_numbers(const RandomOperator& random, Stack& stack, const DrawnPart& part) {
  if (!draws(random, stack)) return false;
  at::Tensor result = random.run(stack, part);
  if (random.is_in_place) {
    const at::Tensor input = stack[0].toTensor();
    if (!result.is_same(input)) result = input.copy_(result);
  }
  stack = {std::move(result)};
  return true;
}

}  // namespace gallop::model::exported
