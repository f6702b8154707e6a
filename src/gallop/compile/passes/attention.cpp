#include "gallop/kernel/attention.h"

#include <algorithm>
#include <cmath>

#include "gallop/compile/passes/attention_forms.h"
#include "gallop/compile/passes/passes.h"
#include "gallop/kernel/operators.h"

// Shapes: B batch, T tokens, H heads, D head dimension.
namespace gallop::compile::passes {

namespace {

// The one tensor [B, T, 3, H, D] whose slices are queries, keys and values [B, H, T, D].
std::optional<ViewId> packed_view(Matcher& matcher, ViewId query, ViewId key, ViewId value) {
  if (query == kNone || key == kNone || value == kNone) return std::nullopt;
  const View of = matcher.view(query);
  if (of.sizes.size() != 4) return std::nullopt;
  const int64_t batch = of.sizes[0], heads = of.sizes[1], tokens = of.sizes[2], width = of.sizes[3];
  const int64_t part = heads * width, row = 3 * part;
  View wanted = of;
  wanted.strides = {tokens * row, width, row, 1};
  for (const ViewId view : {query, key, value}) {
    const View& found = matcher.view(view);
    if (found.buffer != of.buffer || found.offset != wanted.offset || found.dtype != of.dtype ||
        !is_laid_out_alike(found, wanted)) {
      return std::nullopt;
    }
    wanted.offset += part;
  }
  return matcher.intern({.buffer = of.buffer,
                         .offset = of.offset,
                         .sizes = {batch, tokens, 3, heads, width},
                         .strides = {tokens * row, row, part, width, 1},
                         .dtype = of.dtype});
}

// [B, H, T, D] as [B, T, H, D], if it is contiguous in that order and fills its buffer.
std::optional<ViewId> by_tokens(Matcher& matcher, ViewId tensor) {
  View view = matcher.view(tensor);
  if (view.sizes.size() != 4) return std::nullopt;
  std::swap(view.sizes[1], view.sizes[2]);
  std::swap(view.strides[1], view.strides[2]);
  if (!is_contiguous(view)) return std::nullopt;
  const ViewId id = matcher.intern(view);
  return is_whole(matcher.graph(), id) ? std::optional(id) : std::nullopt;
}

// The node that concatenates the gradients of query, key and value in the layout of the packed
// tensor, [.., 3, H, D], and the nodes to remove with it.
struct Packing {
  ViewId packed = kNone;
  std::vector<int64_t> removed;
};

bool is_last_dimension(const Matcher& matcher, int64_t cat) {
  const auto dimensions = static_cast<int64_t>(matcher.view(matcher.result(cat)).sizes.size());
  const int64_t given = matcher.constant(cat, 1).toInt();
  return (given < 0 ? given + dimensions : given) == dimensions - 1;
}

// cat of three [B, T, H * D], the gradient of split and chunk.
std::optional<Packing> by_cat(Matcher& matcher, int64_t cat, const std::vector<ViewId>& gradients) {
  const auto& parts = matcher.node(cat).arguments[0].views;
  if (!matcher.is(cat, "aten::cat") || parts.size() != 3 || !is_last_dimension(matcher, cat))
    return std::nullopt;
  const View first = matcher.view(gradients[0]);
  for (size_t i = 0; i < 3; ++i) {
    const View part = matcher.view(parts[i]);
    if (part.buffer != matcher.view(gradients[i]).buffer || !is_contiguous(part) ||
        part.offset != 0 || !by_tokens(matcher, gradients[i]) || part.numel() != first.numel() ||
        part.sizes.back() != first.sizes[1] * first.sizes[3]) {
      return std::nullopt;
    }
  }
  return Packing{matcher.result(cat), {cat}};
}

// stack of three [B, H, T, D], then a clone as [B, T, 3, H, D]: the gradient of permute and unbind.
std::optional<Packing> by_stack(const Matcher& matcher, int64_t stack,
                                const std::vector<ViewId>& gradients) {
  const auto& parts = matcher.node(stack).arguments[0].views;
  if (!matcher.is(stack, "aten::stack") || parts != gradients ||
      matcher.constant(stack, 1).toInt() != 0) {
    return std::nullopt;
  }
  const ViewId stacked = matcher.result(stack);
  const auto readers = matcher.readers_of(stacked);
  if (readers.size() != 1 || !matcher.is(readers[0], "aten::clone") ||
      !matcher.is_only_read_by(stacked, readers) || !is_whole(matcher.graph(), stacked)) {
    return std::nullopt;
  }
  const View& all = matcher.view(stacked);
  View wanted = all;
  const auto order = {1, 3, 0, 2, 4};
  std::transform(order.begin(), order.end(), wanted.sizes.begin(),
                 [&](int i) { return all.sizes[static_cast<size_t>(i)]; });
  std::transform(order.begin(), order.end(), wanted.strides.begin(),
                 [&](int i) { return all.strides[static_cast<size_t>(i)]; });
  if (!is_laid_out_alike(matcher.view(matcher.argument(readers[0], 0)), wanted))
    return std::nullopt;
  return Packing{matcher.result(readers[0]), {stack, readers[0]}};
}

// The node that packs the three gradients, their only reader.
std::optional<Packing> packing_of(Matcher& matcher, const std::vector<ViewId>& gradients) {
  int64_t reader = kNone;
  for (const ViewId gradient : gradients) {
    if (gradient == kNone) return std::nullopt;
    const auto readers = matcher.readers_of(gradient);
    if (readers.size() != 1 || !matcher.is_only_read_by(gradient, readers) ||
        (reader != kNone && readers[0] != reader)) {
      return std::nullopt;
    }
    reader = readers[0];
  }
  auto packing = by_cat(matcher, reader, gradients);
  if (!packing) packing = by_stack(matcher, reader, gradients);
  const bool fits = packing && is_contiguous(matcher.view(packing->packed)) &&
                    is_whole(matcher.graph(), packing->packed);
  return fits ? packing : std::nullopt;
}

}  // namespace

std::optional<Rewrite> rewrite_attention(Matcher& matcher, const AttentionForm& form) {
  const auto packed = packed_view(matcher, form.query, form.key, form.value);
  const auto y = by_tokens(matcher, form.y);
  if (!packed || !y || matcher.view(*y).dtype != matcher.view(*packed).dtype ||
      !kernel::takes_attention(matcher.stand_in(*packed), form.causal)) {
    return std::nullopt;
  }
  // [B, T, H, D]; a copy, as the views that follow may move those of the graph.
  const std::vector<int64_t> sizes = matcher.view(*y).sizes;
  const ViewId log_sums = matcher.fresh({sizes[0], sizes[2], sizes[1]}, c10::kFloat);
  const auto causal = Operand::of(c10::IValue(form.causal)),
             scale = Operand::of(c10::IValue(form.scale));
  Rewrite change{.removed = form.removed, .added = {}};
  if (!matcher.can_be_read_at(*packed, form.first, form.place)) return std::nullopt;
  change.added.emplace_back(
      form.place, Node{.op = kernel::attention_operator(),
                       .arguments = {Operand::of(*packed), causal, scale, no_tensor(), no_tensor()},
                       .results = {Operand::of(*y), Operand::of(log_sums)}});
  if (form.gradient_place == kNone) return change;
  const auto packing = packing_of(matcher, form.gradients);
  if (!packing || !matcher.can_be_read_at(*packed, form.first, form.gradient_place) ||
      !matcher.can_be_read_at(*y, form.place + 1, form.gradient_place)) {
    return std::nullopt;
  }
  View dy = matcher.view(form.dy);
  if (dy.sizes.size() != 4 || dy.dtype != matcher.view(*y).dtype) return std::nullopt;
  std::swap(dy.sizes[1], dy.sizes[2]);
  std::swap(dy.strides[1], dy.strides[2]);
  if (dy.sizes != sizes) return std::nullopt;
  change.removed.insert(change.removed.end(), packing->removed.begin(), packing->removed.end());
  const ViewId gradient = matcher.reshaped(packing->packed, matcher.view(*packed).sizes);
  change.added.emplace_back(
      form.gradient_place,
      Node{.op = kernel::attention_backward_operator(),
           .arguments = {Operand::of(matcher.intern(dy)), Operand::of(*packed), Operand::of(*y),
                         Operand::of(log_sums), causal, scale, no_tensor(), no_tensor()},
           .results = {Operand::of(gradient)}});
  return change;
}

namespace {

// Arguments of the fused operator and of its gradient.
enum Fused : size_t { kQuery, kKey, kValue, kDropout, kCausal, kMask, kScale };
enum Gradient : size_t {
  kDy,
  kGradientQuery,
  kGradientKey,
  kGradientValue,
  kOut,
  kLogSums,
  kGradientDropout,
  kGradientCausal,
  kGradientMask,
  kGradientScale
};

double scale_of(const c10::IValue& given, int64_t width) {
  return given.isNone() ? 1 / std::sqrt(static_cast<double>(width)) : given.toDouble();
}

std::optional<Rewrite> match_fused(Matcher& matcher, int64_t index) {
  if (!matcher.is(index, "aten::_scaled_dot_product_flash_attention_for_cpu")) return std::nullopt;
  AttentionForm form{.query = matcher.argument(index, kQuery),
                     .key = matcher.argument(index, kKey),
                     .value = matcher.argument(index, kValue),
                     .y = matcher.result(index)};
  if (form.query == kNone || form.y == kNone || matcher.argument(index, kMask) != kNone ||
      matcher.constant(index, kDropout).toDouble() != 0) {
    return std::nullopt;
  }
  form.causal = matcher.constant(index, kCausal).toBool();
  form.scale = scale_of(matcher.constant(index, kScale), matcher.view(form.query).sizes.back());
  if (!(form.scale >= 0)) return std::nullopt;  // The kernel shifts scores by their maximum.
  form.first = form.place = index;
  form.removed = {index};
  const ViewId log_sums = matcher.result(index, 1);
  const auto readers = matcher.readers_of(log_sums);
  if (readers.size() > 1 || !matcher.is_only_read_by(log_sums, readers)) return std::nullopt;
  if (readers.empty()) return rewrite_attention(matcher, form);
  const int64_t gradient = readers[0];
  const bool fits =
      matcher.is(gradient, "aten::_scaled_dot_product_flash_attention_for_cpu_backward") &&
      matcher.argument(gradient, kGradientQuery) == form.query &&
      matcher.argument(gradient, kGradientKey) == form.key &&
      matcher.argument(gradient, kGradientValue) == form.value &&
      matcher.argument(gradient, kOut) == form.y && matcher.argument(gradient, kDy) != kNone &&
      matcher.maker_of(form.y) == index;
  if (!fits) return std::nullopt;
  form.gradient_place = gradient;
  form.dy = matcher.argument(gradient, kDy);
  form.gradients = {matcher.result(gradient, 0), matcher.result(gradient, 1),
                    matcher.result(gradient, 2)};
  form.removed.push_back(gradient);
  return rewrite_attention(matcher, form);
}

}  // namespace

void attention(Graph& graph) { rewrite_all(graph, match_fused); }

}  // namespace gallop::compile::passes
