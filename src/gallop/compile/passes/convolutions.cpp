#include <algorithm>
#include <array>
#include <functional>

#include "gallop/compile/passes/matcher.h"
#include "gallop/compile/passes/passes.h"
#include "gallop/kernel/conv2d.h"
#include "gallop/kernel/depthwise_conv2d.h"
#include "gallop/kernel/operators.h"

namespace gallop::compile::passes {

namespace {

// Arguments of aten::convolution, and of its gradient, which has dy and x first and the sizes of
// the bias third.
enum Convolution : size_t {
  kX,
  kWeight,
  kBias,
  kStride,
  kPadding,
  kDilation,
  kTransposed,
  kOutputPadding,
  kGroups
};
enum Gradient : size_t { kDy, kGradientX, kGradientWeight, kBiasSizes, kAfter, kMask = 10 };

/// How a 2-D convolution that is not transposed moves its filters: the same in both dimensions.
struct Steps {
  int64_t stride, padding, dilation, groups;
};

// The arguments from the stride on begin at `first`.
std::optional<Steps> steps_of(const Matcher& matcher, int64_t index, size_t first) {
  const auto at = [&](Convolution argument) {
    return matcher.constant(index, first + argument - kStride);
  };
  if (at(kTransposed).toBool()) return std::nullopt;
  const auto equal = [&](Convolution argument) -> std::optional<int64_t> {
    const std::vector<int64_t> sizes = at(argument).toIntVector();
    if (sizes.empty() || sizes.size() > 2 || sizes.front() != sizes.back()) return std::nullopt;
    return sizes.front();
  };
  const auto stride = equal(kStride), padding = equal(kPadding), dilation = equal(kDilation);
  if (!stride || !padding || !dilation) return std::nullopt;
  return Steps{*stride, *padding, *dilation, at(kGroups).toInt()};
}

// The window of a plain 2-D convolution.
std::optional<kernel::Conv2dWindow> window_of(const Matcher& matcher, int64_t index, size_t first,
                                              ViewId weight) {
  const auto steps = steps_of(matcher, index, first);
  const auto& filters = matcher.view(weight).sizes;
  if (!steps || steps->dilation != 1 || steps->groups != 1 || filters.size() != 4) {
    return std::nullopt;
  }
  return kernel::Conv2dWindow{.height = filters[2],
                              .width = filters[3],
                              .stride = steps->stride,
                              .padding = steps->padding};
}

// The same for one filter per channel of x.
std::optional<kernel::DepthwiseWindow> depthwise_window_of(const Matcher& matcher, int64_t index,
                                                           size_t first, ViewId x, ViewId weight) {
  const auto steps = steps_of(matcher, index, first);
  const auto &filters = matcher.view(weight).sizes, &sizes = matcher.view(x).sizes;
  if (!steps || filters.size() != 4 || sizes.size() != 4 || filters[0] != sizes[1] ||
      filters[1] != 1 || steps->groups != sizes[1]) {
    return std::nullopt;
  }
  return kernel::DepthwiseWindow{.height = filters[2],
                                 .width = filters[3],
                                 .stride = steps->stride,
                                 .padding = steps->padding,
                                 .dilation = steps->dilation};
}

Operand number(int64_t value) { return Operand::of(c10::IValue(value)); }

// Leaves to LibTorch the gradients of x, the weight and the bias that `wanted` has, if any.
void add_library_gradient(const Matcher& matcher, int64_t index, std::array<bool, 3> wanted,
                          Rewrite& change) {
  if (std::none_of(wanted.begin(), wanted.end(), std::identity())) return;
  Node library = matcher.node(index);
  library.arguments[kMask] =
      Operand::of(c10::IValue(c10::List<bool>({wanted[0], wanted[1], wanted[2]})));
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i]) library.results[i] = Operand::of(ViewId{kNone});
  }
  change.added.emplace_back(index, std::move(library));
}

std::optional<Rewrite> forward(Matcher& matcher, int64_t index) {
  const ViewId x = matcher.argument(index, kX), weight = matcher.argument(index, kWeight);
  if (x == kNone || weight == kNone || !is_channels_last(matcher, matcher.result(index))) {
    return std::nullopt;
  }
  const auto window = window_of(matcher, index, kStride, weight);
  if (!window || !kernel::takes_conv2d(matcher.stand_in(x), matcher.stand_in(weight), *window)) {
    return std::nullopt;
  }
  Node node{.op = kernel::conv2d_operator(),
            .arguments = {Operand::of(x), Operand::of(weight), matcher.node(index).arguments[kBias],
                          number(window->stride), number(window->padding)},
            .results = {Operand::of(matcher.result(index))}};
  return Rewrite{.removed = {index}, .added = {{index, std::move(node)}}};
}

// Replaces those of both gradients for which the kernels are faster.
std::optional<Rewrite> depthwise_gradient(Matcher& matcher, int64_t index) {
  const ViewId dy = matcher.argument(index, kDy), x = matcher.argument(index, kGradientX);
  const ViewId weight = matcher.argument(index, kGradientWeight);
  if (dy == kNone || x == kNone || weight == kNone ||
      matcher.view(dy).dtype != matcher.view(x).dtype) {
    return std::nullopt;
  }
  const auto window = depthwise_window_of(matcher, index, kAfter, x, weight);
  if (!window) return std::nullopt;
  const auto wanted = matcher.constant(index, kMask).toBoolList();
  const at::Tensor image = matcher.stand_in(x);
  const bool of_x = wanted[0] && kernel::takes_depthwise_conv2d_dgrad(image, *window) &&
                    is_channels_last(matcher, matcher.result(index, 0));
  const bool of_weight = wanted[1] && kernel::takes_depthwise_conv2d_wgrad(image, *window);
  if (!of_x && !of_weight) return std::nullopt;
  const auto& results = matcher.node(index).results;
  const auto& sizes = matcher.view(x).sizes;
  const Operand stride = number(window->stride), padding = number(window->padding),
                dilation = number(window->dilation);
  Rewrite change{.removed = {index}};
  if (of_x) {
    change.added.emplace_back(
        index, Node{.op = kernel::depthwise_conv2d_dgrad_operator(),
                    .arguments = {Operand::of(dy), Operand::of(weight), number(sizes[2]),
                                  number(sizes[3]), stride, padding, dilation},
                    .results = {results[0]}});
  }
  if (of_weight) {
    change.added.emplace_back(
        index, Node{.op = kernel::depthwise_conv2d_wgrad_operator(),
                    .arguments = {Operand::of(dy), Operand::of(x), number(window->height),
                                  number(window->width), stride, padding, dilation,
                                  Operand::of(c10::IValue(bool{wanted[2]}))},
                    .results = {results[1], results[2]}});
  }
  add_library_gradient(matcher, index,
                       {wanted[0] && !of_x, wanted[1] && !of_weight, wanted[2] && !of_weight},
                       change);
  return change;
}

// The gradient of the bias: dy, in channels_last, summed over all pixels.
Node bias_gradient(Matcher& matcher, ViewId dy, ViewId bias) {
  View pixels = matcher.view(dy);
  const int64_t channels = pixels.sizes[1];
  pixels.sizes = {pixels.numel() / channels, channels};
  pixels.strides = {channels, 1};
  return Node{.op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::sum", "dim_IntList"),
              .arguments = {Operand::of(matcher.intern(pixels)),
                            Operand::of(c10::IValue(std::vector<int64_t>{0})),
                            Operand::of(c10::IValue(false)), Operand::of(c10::IValue())},
              .results = {Operand::of(bias)}};
}

// The only reader of a bf16 weight gradient, if it casts it to fp32; else kNone.
int64_t cast_of(const Matcher& matcher, ViewId gradient) {
  if (gradient == kNone || matcher.is_output(gradient)) return kNone;
  const std::vector<int64_t> readers = matcher.readers_of(gradient);
  if (readers.size() != 1 || !is_plain_cast(matcher, readers[0])) return kNone;
  const ViewId cast = matcher.result(readers[0]);
  const bool is_wide = matcher.view(cast).dtype == at::kFloat && is_channels_last(matcher, cast);
  return is_wide ? readers[0] : kNone;
}

// Replaces those of the gradients of x and of the weight for which the kernels are faster.
std::optional<Rewrite> gradient(Matcher& matcher, int64_t index) {
  const ViewId dy = matcher.argument(index, kDy), x = matcher.argument(index, kGradientX);
  const ViewId weight = matcher.argument(index, kGradientWeight);
  if (dy == kNone || x == kNone || weight == kNone || !is_channels_last(matcher, dy)) {
    return std::nullopt;
  }
  const auto wanted = matcher.constant(index, kMask).toBoolList();
  const auto window = window_of(matcher, index, kAfter, weight);
  const auto &sizes = matcher.view(x).sizes, &filters = matcher.view(weight).sizes;
  if (!window || sizes.size() != 4 || matcher.view(dy).dtype != matcher.view(x).dtype) {
    return std::nullopt;
  }
  const Operand stride = number(window->stride), padding = number(window->padding);
  Rewrite change{.removed = {index}};
  const bool of_x = wanted[0] && is_channels_last(matcher, matcher.result(index, 0)) &&
                    kernel::takes_conv2d_dgrad(matcher.stand_in(dy), matcher.stand_in(weight),
                                               sizes[2], sizes[3], *window);
  if (of_x) {
    change.added.emplace_back(
        index, Node{.op = kernel::conv2d_dgrad_operator(),
                    .arguments = {Operand::of(dy), Operand::of(weight), number(sizes[2]),
                                  number(sizes[3]), stride, padding},
                    .results = {Operand::of(matcher.result(index, 0))}});
  }
  // The kernel's result is in fp32.
  const int64_t cast = wanted[1] ? cast_of(matcher, matcher.result(index, 1)) : kNone;
  const bool of_weight =
      cast != kNone && kernel::prefers_conv2d_wgrad(matcher.stand_in(x), filters[0], *window) &&
      matcher.can_be_read_at(dy, index, cast) && matcher.can_be_read_at(x, index, cast);
  if (of_weight) {
    change.removed.push_back(cast);
    change.added.emplace_back(
        cast, Node{.op = kernel::conv2d_wgrad_operator(),
                   .arguments = {Operand::of(dy), Operand::of(x), number(window->height),
                                 number(window->width), stride, padding},
                   .results = {Operand::of(matcher.result(cast))}});
  }
  // LibTorch computes the gradient of the bias along with the weight's.
  const bool of_bias = of_weight && wanted[2];
  if (of_bias) {
    change.added.emplace_back(index, bias_gradient(matcher, dy, matcher.result(index, 2)));
  }
  if (!of_x && !of_weight) return std::nullopt;
  add_library_gradient(
      matcher, index, {wanted[0] && !of_x, wanted[1] && !of_weight, wanted[2] && !of_bias}, change);
  return change;
}

std::optional<Rewrite> match(Matcher& matcher, int64_t index) {
  if (matcher.is(index, "aten::convolution")) return forward(matcher, index);
  if (matcher.is(index, "aten::convolution_backward")) {
    auto change = gradient(matcher, index);
    return change ? change : depthwise_gradient(matcher, index);
  }
  return std::nullopt;
}

}  // namespace

void convolutions(Graph& graph) { rewrite_all(graph, match); }

}  // namespace gallop::compile::passes
