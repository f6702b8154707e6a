#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <c10/core/WrapDimMinimal.h>

#include "gallop/compile/passes/calls.h"
#include "gallop/compile/passes/passes.h"

namespace gallop::compile::passes {

namespace {

/// The gradient of a slice of a tensor, which is 0 elsewhere.
struct Slice {
  int64_t node = kNone;
  ViewId gradient = kNone;
  int64_t dim = 0, begin = 0, end = 0;
  bool is_row = false;  // Whether it is select, without the dimension.
};

/// A term of a sum, and the node that adds it.
struct Term {
  ViewId view = kNone;
  int64_t added_by = kNone;
};

/// A tree of additions, by whose root all others are read.
struct Sum {
  std::vector<int64_t> nodes;
  std::vector<Term> terms;  // In their order.
};

bool is_read_by_one(const Matcher& matcher, ViewId tensor, int64_t reader) {
  return matcher.is_only_read_by(tensor, {reader}) && is_whole(matcher.graph(), tensor);
}

// The node that makes exactly this tensor, if `reader` is the only one that reads it.
int64_t maker_for(const Matcher& matcher, ViewId tensor, int64_t reader) {
  const int64_t maker = matcher.maker_of(tensor);
  return maker != kNone && matcher.result(maker) == tensor &&
                 is_read_by_one(matcher, tensor, reader)
             ? maker
             : kNone;
}

void collect(const Matcher& matcher, int64_t node, Sum& sum) {
  const auto operands = operands_of_sum(matcher, node);
  sum.nodes.push_back(node);
  for (const ViewId operand : {operands->first, operands->second}) {
    const int64_t maker = maker_for(matcher, operand, node);
    if (operands_of_sum(matcher, maker)) {
      collect(matcher, maker, sum);
    } else {
      sum.terms.push_back({.view = operand, .added_by = node});
    }
  }
}

// Whether another addition reads the result and nothing else does: it is the root then.
bool is_inner(const Matcher& matcher, int64_t node) {
  const auto readers = matcher.readers_of(matcher.result(node));
  return readers.size() == 1 && operands_of_sum(matcher, readers[0]) &&
         maker_for(matcher, matcher.result(node), readers[0]) == node;
}

std::optional<Slice> slice_of(const Matcher& matcher, const Term& term) {
  const int64_t node = maker_for(matcher, term.view, term.added_by);
  const bool is_row = matcher.is(node, "aten::select_backward");
  if (!is_row && !matcher.is(node, "aten::slice_backward")) return std::nullopt;
  const View& whole = matcher.view(term.view);
  Slice slice{.node = node, .gradient = matcher.argument(node, 0), .is_row = is_row};
  const auto dims = static_cast<int64_t>(whole.sizes.size());
  slice.dim = c10::maybe_wrap_dim(matcher.constant(node, 2).toInt(), dims);
  if (slice.gradient == kNone) return std::nullopt;
  const int64_t size = whole.sizes[static_cast<size_t>(slice.dim)];
  const auto bound = [&](size_t argument) {
    const int64_t given = matcher.constant(node, argument).toInt();
    return std::clamp<int64_t>(given < 0 ? given + size : given, 0, size);
  };
  slice.begin = bound(3);
  slice.end = is_row ? slice.begin + 1 : bound(4);
  if (!is_row && matcher.constant(node, 5).toInt() != 1) return std::nullopt;
  return slice.begin < slice.end ? std::optional(slice) : std::nullopt;
}

// Slices of one dimension that together cover it, without overlaps, in their order.
std::vector<Slice> covering(const Matcher& matcher, const Sum& sum) {
  std::map<std::pair<int64_t, bool>, std::vector<Slice>> by_dim;
  for (const Term& term : sum.terms) {
    if (const auto slice = slice_of(matcher, term)) {
      by_dim[{slice->dim, slice->is_row}].push_back(*slice);
    }
  }
  const View& whole = matcher.view(sum.terms[0].view);
  for (auto& [key, slices] : by_dim) {
    std::sort(slices.begin(), slices.end(),
              [](const Slice& a, const Slice& b) { return a.begin < b.begin; });
    int64_t end = 0;
    for (const Slice& slice : slices) end = slice.begin == end ? slice.end : kNone;
    if (slices.size() > 1 && end == whole.sizes[static_cast<size_t>(key.first)]) return slices;
  }
  return {};
}

std::optional<Rewrite> assemble(Matcher& matcher, int64_t node) {
  if (!operands_of_sum(matcher, node) || is_inner(matcher, node)) return std::nullopt;
  Sum sum;
  collect(matcher, node, sum);
  const auto slices = covering(matcher, sum);
  if (slices.empty()) return std::nullopt;
  std::vector<ViewId> parts, rest;
  std::vector<int64_t> removed(sum.nodes.begin() + 1, sum.nodes.end());
  for (const Slice& slice : slices) {
    if (!matcher.can_be_read_at(slice.gradient, slice.node, node)) return std::nullopt;
    parts.push_back(slice.gradient);
    removed.push_back(slice.node);
  }
  for (const Term& term : sum.terms) {
    const bool is_slice = std::any_of(slices.begin(), slices.end(), [&](const Slice& slice) {
      return matcher.result(slice.node) == term.view;
    });
    if (is_slice) continue;
    if (!matcher.can_be_read_at(term.view, term.added_by, node)) return std::nullopt;
    rest.push_back(term.view);
  }
  Calls calls(matcher, node);
  const ViewId result = matcher.result(node);
  const ViewId whole =
      calls.joined(parts, slices[0].dim, slices[0].is_row, rest.empty() ? result : kNone);
  if (!rest.empty()) {
    ViewId others = rest[0];
    for (size_t i = 1; i < rest.size(); ++i) others = calls.add(others, rest[i]);
    calls.add(others, whole, result);
  }
  auto change = std::move(calls).finish();
  if (change) change->removed.insert(change->removed.end(), removed.begin(), removed.end());
  return change;
}

// The dimensions of `of` in the order in which the view has them, if it is a permutation.
std::optional<std::vector<size_t>> permutation(const View& view, const View& of) {
  if (view.sizes.size() != of.sizes.size() || view.offset != of.offset || view.dtype != of.dtype) {
    return std::nullopt;
  }
  std::vector<size_t> order;
  std::vector<bool> taken(of.sizes.size());
  for (size_t i = 0; i < view.sizes.size(); ++i) {
    size_t at = 0;
    while (at < of.sizes.size() && (taken[at] || of.sizes[at] != view.sizes[i] ||
                                    (view.sizes[i] != 1 && of.strides[at] != view.strides[i]))) {
      ++at;
    }
    if (at == of.sizes.size()) return std::nullopt;
    taken[at] = true;
    order.push_back(at);
  }
  return order;
}

std::optional<Rewrite> join_in_order(Matcher& matcher, int64_t clone) {
  if (!matcher.is(clone, "aten::clone")) return std::nullopt;
  const ViewId read = matcher.argument(clone, 0), made = matcher.result(clone);
  if (read == kNone || made == kNone) return std::nullopt;
  const int64_t join = matcher.source_of(read);
  const bool stacks = matcher.is(join, "aten::stack");
  if (!stacks && !matcher.is(join, "aten::cat")) return std::nullopt;
  const ViewId joined = matcher.result(join);
  if (!is_read_by_one(matcher, joined, clone)) return std::nullopt;
  const auto order = permutation(matcher.view(read), matcher.view(joined));
  if (!order) return std::nullopt;
  const int64_t dim =
      c10::maybe_wrap_dim(matcher.constant(join, 1).toInt(), static_cast<int64_t>(order->size()));
  const auto place = std::find(order->begin(), order->end(), static_cast<size_t>(dim));
  std::vector<ViewId> parts;
  for (const ViewId given : matcher.node(join).arguments[0].views) {
    View part = matcher.view(given);
    // A legacy of `cat`: empty tensors of one dimension are skipped.
    if (part.sizes.size() + (stacks ? 1 : 0) != order->size() ||
        !matcher.can_be_read_at(given, join, clone)) {
      return std::nullopt;
    }
    const View old = part;
    part.sizes.clear();
    part.strides.clear();
    for (const size_t at : *order) {
      if (stacks && at == static_cast<size_t>(dim)) continue;
      const size_t own = stacks && at > static_cast<size_t>(dim) ? at - 1 : at;
      part.sizes.push_back(old.sizes[own]);
      part.strides.push_back(old.strides[own]);
    }
    parts.push_back(matcher.intern(part));
  }
  Calls calls(matcher, clone);
  calls.joined(parts, place - order->begin(), stacks, made);
  auto change = std::move(calls).finish();
  if (change) change->removed.push_back(join);
  return change;
}

}  // namespace

void slice_gradients(Graph& graph) { rewrite_all(graph, assemble); }

void ordered_joins(Graph& graph) { rewrite_all(graph, join_in_order); }

}  // namespace gallop::compile::passes
