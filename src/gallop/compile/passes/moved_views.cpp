#include "gallop/compile/passes/moved_views.h"

#include <algorithm>

namespace gallop::compile::passes {

bool is_flash_attention(const Matcher& matcher, int64_t node) {
  return matcher.is_one_of(node, {"aten::_scaled_dot_product_flash_attention_for_cpu",
                                  "aten::_scaled_dot_product_flash_attention_for_cpu_backward"});
}

bool MovedViews::add_columns(ViewId from, ViewId to, int64_t column) {
  const View old = matcher_.view(from), target = matcher_.view(to);
  const int64_t width = old.sizes[1], row = target.sizes[1];
  const auto count = static_cast<ViewId>(matcher_.graph().views.size());
  for (ViewId id = 0; id < count; ++id) {
    View view = matcher_.view(id);
    if (view.buffer != old.buffer) continue;
    if (view.dtype != old.dtype) return false;
    const int64_t within = view.offset % width;
    int64_t last = within;
    for (size_t d = 0; d < view.sizes.size(); ++d) {
      if (view.strides[d] % width == 0) {
        view.strides[d] = view.strides[d] / width * row;
      } else {
        last += (view.sizes[d] - 1) * view.strides[d];
      }
    }
    if (last >= width) return false;
    view.offset = view.offset / width * row + column + within;
    view.buffer = target.buffer;
    moved_[id] = matcher_.intern(view);
  }
  return true;
}

bool MovedViews::add_shifted(ViewId from, ViewId to, int64_t elements) {
  const View old = matcher_.view(from), target = matcher_.view(to);
  const auto count = static_cast<ViewId>(matcher_.graph().views.size());
  for (ViewId id = 0; id < count; ++id) {
    View view = matcher_.view(id);
    if (view.buffer != old.buffer) continue;
    if (view.dtype != old.dtype) return false;
    view.buffer = target.buffer;
    view.offset += elements;
    moved_[id] = matcher_.intern(view);
  }
  return true;
}

bool MovedViews::suit_readers_of(ViewId tensor) const {
  const auto readers = matcher_.readers_of(tensor);
  return std::all_of(readers.begin(), readers.end(), [&](int64_t reader) {
    if (is_flash_attention(matcher_, reader)) return true;
    Node node = matcher_.node(reader);
    if (node.op.schema().name().starts_with("gallop::")) return false;
    apply_to(node);
    const auto layouts = result_layouts(matcher_.graph(), node);
    if (layouts.size() != node.results.size()) return false;
    for (size_t i = 0; i < layouts.size(); ++i) {
      const ViewId made = node.results[i].views[0];
      if (made != kNone && !is_laid_out_alike(layouts[i], matcher_.view(made))) return false;
    }
    return true;
  });
}

void MovedViews::apply_to(Rewrite& change) const {
  for (Node& node : matcher_.graph().nodes) apply_to(node);
  for (auto& [place, node] : change.added) apply_to(node);
}

ViewId MovedViews::now(ViewId id) const {
  const auto found = moved_.find(id);
  return found == moved_.end() ? id : found->second;
}

void MovedViews::apply_to(Node& node) const {
  for (Operand& operand : node.arguments) {
    for (ViewId& view : operand.views) view = now(view);
  }
}

}  // namespace gallop::compile::passes
