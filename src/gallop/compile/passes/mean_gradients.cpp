#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <c10/core/Scalar.h>
#include <c10/util/BFloat16.h>
#include <c10/util/Half.h>

#include "gallop/compile/analysis.h"
#include "gallop/compile/passes/calls.h"
#include "gallop/compile/passes/passes.h"

namespace gallop::compile::passes {

namespace {

// Arguments of aten::avg_pool2d_backward.
enum Pool : size_t { kDy, kX, kKernel, kStride, kPadding, kCeil, kCountPadding, kDivisor };

// The gradient of a mean: `gradient` divided by `count`, for each of the elements that were
// averaged.
struct MeanGradient {
  ViewId gradient = kNone;  // With sizes of 1 where elements were averaged.
  double count = 1;
};

bool is_exact(int64_t count, at::ScalarType type) {
  const auto value = static_cast<float>(count);
  switch (type) {
    case at::kFloat: return static_cast<int64_t>(value) == count;
    case at::kBFloat16: return static_cast<float>(c10::BFloat16(value)) == value;
    case at::kHalf: return static_cast<float>(c10::Half(value)) == value;
    default: return false;
  }
}

// The gradient of average pooling over whole images.
std::optional<MeanGradient> gradient_of_pool(const Matcher& matcher, int64_t index) {
  if (!matcher.is(index, "aten::avg_pool2d_backward")) return std::nullopt;
  const ViewId dy = matcher.argument(index, kDy), x = matcher.argument(index, kX);
  if (dy == kNone || x == kNone || !matcher.constant(index, kDivisor).isNone()) return std::nullopt;
  const View &from = matcher.view(dy), &to = matcher.view(x);
  if (from.sizes.size() != 4 || from.sizes[2] != 1 || from.sizes[3] != 1) return std::nullopt;
  const std::vector<int64_t> image = {to.sizes[2], to.sizes[3]};
  if (matcher.constant(index, kKernel).toIntVector() != image) return std::nullopt;
  const auto padding = matcher.constant(index, kPadding).toIntVector();
  if (std::any_of(padding.begin(), padding.end(), [](int64_t one) { return one != 0; })) {
    return std::nullopt;
  }
  const int64_t count = image[0] * image[1];
  // LibTorch divides by the count in the gradient's format.
  if (!is_exact(count, from.dtype)) return std::nullopt;
  return MeanGradient{.gradient = dy, .count = static_cast<double>(count)};
}

// The gradient of aten::mean, which LibTorch expands first.
std::optional<MeanGradient> gradient_of_mean(Matcher& matcher, int64_t index) {
  if (!matcher.is(index, "aten::div.Scalar")) return std::nullopt;
  const ViewId expanded = matcher.argument(index, 0), made = matcher.result(index);
  if (expanded == kNone || made == kNone ||
      matcher.view(expanded).dtype != matcher.view(made).dtype) {
    return std::nullopt;
  }
  View small = matcher.view(expanded);
  bool is_expanded = false;
  for (size_t i = 0; i < small.sizes.size(); ++i) {
    if (small.strides[i] != 0 || small.sizes[i] == 1) continue;
    small.sizes[i] = small.strides[i] = 1;
    is_expanded = true;
  }
  if (!is_expanded) return std::nullopt;
  return MeanGradient{.gradient = matcher.intern(small),
                      .count = matcher.constant(index, 1).toScalar().toDouble()};
}

// The node with `to` in place of `from`; nothing if its results would be laid out differently.
std::optional<Node> reading(const Matcher& matcher, int64_t reader, ViewId from, ViewId to) {
  Node node = matcher.node(reader);
  for (Operand& operand : node.arguments) {
    std::replace(operand.views.begin(), operand.views.end(), from, to);
  }
  for (const Operand& result : node.results) {
    const bool writes = std::any_of(result.views.begin(), result.views.end(), [&](ViewId view) {
      return view != kNone && matcher.view(view).buffer == matcher.view(from).buffer;
    });
    if (writes) return std::nullopt;
  }
  const std::vector<View> layouts = result_layouts(matcher.graph(), node);
  size_t number = 0;
  for (const Operand& result : node.results) {
    for (const ViewId view : result.views) {
      if (number >= layouts.size()) return std::nullopt;
      const View& layout = layouts[number++];
      if (view != kNone && !is_laid_out_alike(layout, matcher.view(view))) return std::nullopt;
    }
  }
  return node;
}

std::optional<Rewrite> match(Matcher& matcher, int64_t index) {
  auto mean = gradient_of_pool(matcher, index);
  if (!mean) mean = gradient_of_mean(matcher, index);
  const ViewId spread = mean ? matcher.result(index) : kNone;
  if (spread == kNone || matcher.is_output(spread)) return std::nullopt;
  const std::vector<int64_t> readers = matcher.readers_of(spread);
  if (readers.empty() || !matcher.is_only_read_by(spread, readers)) return std::nullopt;
  Calls calls(matcher, index);
  View expanded = calls.view(calls.divide(mean->gradient, mean->count));
  const View& whole = matcher.view(spread);
  for (size_t i = 0; i < whole.sizes.size(); ++i) {
    if (expanded.sizes[i] == whole.sizes[i]) continue;
    expanded.sizes[i] = whole.sizes[i];
    expanded.strides[i] = 0;
  }
  const ViewId quotient = matcher.intern(expanded);
  auto change = std::move(calls).finish();
  if (!change) return std::nullopt;
  for (const int64_t reader : readers) {
    auto node = reading(matcher, reader, spread, quotient);
    if (!node) return std::nullopt;
    change->removed.push_back(reader);
    change->added.emplace_back(reader, std::move(*node));
  }
  return change;
}

}  // namespace

void mean_gradients(Graph& graph) { rewrite_all(graph, match); }

}  // namespace gallop::compile::passes
