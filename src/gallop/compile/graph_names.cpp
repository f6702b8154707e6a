#include "gallop/compile/graph_names.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/compile/analysis.h"
#include "gallop/compile/graph.h"
#include "gallop/compile/value_text.h"

namespace gallop::compile {

namespace {

std::string by(const std::vector<int64_t>& numbers) {
  return numbers.empty() ? "scalar" : fmt::format("{}", fmt::join(numbers, "x"));
}

// Whether the views are equal except for their buffers.
bool is_equal(const View& a, const View& b) {
  return a.sizes == b.sizes && a.strides == b.strides && a.offset == b.offset && a.dtype == b.dtype;
}

bool is_channels_last(const View& view) {
  if (view.sizes.size() != 4 || is_contiguous(view)) return false;
  const auto& n = view.sizes;
  const auto& s = view.strides;
  return is_contiguous({.sizes = {n[0], n[2], n[3], n[1]}, .strides = {s[0], s[2], s[3], s[1]}});
}

}  // namespace

GraphNamer::GraphNamer(const Graph& graph, const GraphNames& names)
    : graph_(graph), names_(graph.buffers.size()), whole_(graph.buffers.size(), kNone) {
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    const BufferId buffer = graph.views[graph.inputs[i]].buffer;
    names_[buffer] = i < names.inputs.size() ? names.inputs[i] : fmt::format("argument {}", i);
    whole_[buffer] = graph.inputs[i];
  }
  name_state(names);
  name_values();
}

void GraphNamer::name_state(const GraphNames& names) {
  int64_t unnamed = 0;
  for (size_t id = 0; id < graph_.buffers.size(); ++id) {
    const Buffer& buffer = graph_.buffers[id];
    if (buffer.kind != Buffer::Kind::kState) continue;
    for (const auto& [name, tensor] : names.state) {
      if (buffer.copy_of.defined() && tensor.is_alias_of(buffer.copy_of)) {
        names_[id] = name + "(bf16)";
        break;
      }
      if (!tensor.is_alias_of(buffer.state)) continue;
      names_[id] = name;
      for (size_t view = 0; view < graph_.views.size(); ++view) {
        const View& candidate = graph_.views[view];
        if (candidate.buffer == static_cast<BufferId>(id) && tensor.sizes() == candidate.sizes &&
            tensor.strides() == candidate.strides && tensor.storage_offset() == candidate.offset) {
          whole_[id] = static_cast<ViewId>(view);
        }
      }
      break;
    }
    if (names_[id].empty()) names_[id] = fmt::format("(state {})", unnamed++);
  }
}

void GraphNamer::name_values() {
  for (size_t node = 0; node < graph_.nodes.size(); ++node) {
    std::vector<ViewId> made;
    for (const Operand& result : graph_.nodes[node].results) {
      for (const ViewId view : result.views) {
        if (view != kNone && whole_[graph_.views[view].buffer] == kNone) {
          made.push_back(view);
          whole_[graph_.views[view].buffer] = view;
        }
      }
    }
    for (size_t i = 0; i < made.size(); ++i) {
      names_[graph_.views[made[i]].buffer] =
          made.size() == 1 ? fmt::format("%{}", node) : fmt::format("%{}.{}", node, i);
    }
  }
  for (size_t id = 0; id < names_.size(); ++id) {
    if (names_[id].empty()) names_[id] = fmt::format("(buffer {})", id);
  }
}

std::string GraphNamer::name_of_view(int32_t id) const {
  if (id == kNone) return "none";
  const View& view = graph_.views[id];
  const std::string& name = names_[view.buffer];
  const ViewId whole = whole_[view.buffer];
  if (whole == id || (whole == kNone && is_whole(graph_, id))) return name;
  const View none;
  const View& of = whole == kNone ? none : graph_.views[whole];
  if (is_equal(view, of)) return name;
  const View swapped = transposed(view);
  if (is_equal(swapped, of)) return name + "^T";
  const bool is_transposed = !is_contiguous(view) && is_contiguous(swapped);
  std::string what = by(is_transposed ? swapped.sizes : view.sizes);
  if (view.dtype != of.dtype && whole != kNone) what = name_of_format(view.dtype) + " " + what;
  if (!is_contiguous(view) && !is_transposed) what += " by " + by(view.strides);
  if (view.offset != of.offset) what += fmt::format(" at {}", view.offset);
  return fmt::format("{}[{}]{}", name, what, is_transposed ? "^T" : "");
}

std::string GraphNamer::format_of_view(int32_t id) const {
  const View& view = graph_.views[id];
  return fmt::format("{} {}{}", name_of_format(view.dtype), by(view.sizes),
                     is_channels_last(view) ? " nhwc" : "");
}

}  // namespace gallop::compile
