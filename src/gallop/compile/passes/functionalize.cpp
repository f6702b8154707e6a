#include <algorithm>
#include <optional>
#include <string>

#include <ATen/TensorGeometry.h>
#include <c10/core/MemoryFormat.h>

#include "gallop/compile/analysis.h"
#include "gallop/compile/passes/passes.h"

namespace gallop::compile::passes {

namespace {

// The operator with a new result: aten::add.Tensor for aten::add_.Tensor.
std::optional<c10::OperatorHandle> functional_form(const c10::OperatorHandle& op) {
  const auto& name = op.operator_name();
  if (name.name.empty() || name.name.back() != '_') return std::nullopt;
  auto found = c10::Dispatcher::singleton().findSchema(
      {name.name.substr(0, name.name.size() - 1), name.overload_name});
  if (!found) return std::nullopt;
  const auto &in_place = op.schema(), &functional = found->schema();
  const bool alike = !functional.is_mutable() && functional.returns().size() == 1 &&
                     in_place.arguments().size() == functional.arguments().size() &&
                     std::equal(in_place.arguments().begin(), in_place.arguments().end(),
                                functional.arguments().begin(), [](const auto& a, const auto& b) {
                                  return a.name() == b.name() && *a.type() == *b.type();
                                });
  return alike ? found : std::nullopt;
}

// `copy_` to a whole tensor as a cast with a new result. (aten::copy, its functional form, would
// copy the old contents first.) Empty if the sizes or devices differ.
std::optional<Node> as_conversion(const Graph& graph, const Node& node) {
  const ViewId from =
      node.arguments[1].kind == Operand::Kind::kTensor ? node.arguments[1].views[0] : kNone;
  const View& to = graph.views[node.arguments[0].views[0]];
  if (from == kNone || graph.views[from].sizes != to.sizes ||
      graph.buffer_of(from).device != graph.buffers[to.buffer].device) {
    return std::nullopt;
  }
  const auto format =
      at::geometry_is_contiguous(to.sizes, to.strides)         ? at::MemoryFormat::Contiguous
      : c10::is_channels_last_strides_2d(to.sizes, to.strides) ? at::MemoryFormat::ChannelsLast
                                                               : at::MemoryFormat::Preserve;
  return Node{.op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::_to_copy", ""),
              .arguments = {node.arguments[1], Operand::of(to.dtype), Operand(), Operand(),
                            Operand(), node.arguments[2], Operand::of(format)},
              .results = {}};
}

// The same call with a new tensor as its result.
std::optional<Node> functional_form(const Graph& graph, const Node& node) {
  if (name_of(node.op) == "aten::copy_") return as_conversion(graph, node);
  const auto op = functional_form(node.op);
  if (!op) return std::nullopt;
  return Node{.op = *op, .arguments = node.arguments, .results = {}};
}

// The node that computes the changed value as a new one; nothing if that is not equivalent.
// `versions`: the number of changes of each buffer so far, including this one.
std::optional<Node> as_value(Graph& graph, const Node& node, const std::vector<int64_t>& versions) {
  if (is_random(node.op) || node.arguments.empty() ||
      node.arguments[0].kind != Operand::Kind::kTensor || node.arguments[0].views[0] == kNone) {
    return std::nullopt;
  }
  const ViewId changed = node.arguments[0].views[0];
  const auto accesses = accesses_of(node);
  const auto writes = std::count_if(accesses.begin(), accesses.end(),
                                    [](const Access& access) { return access.writes; });
  if (writes != 1 || graph.buffer_of(changed).kind != Buffer::Kind::kTemporary ||
      !is_whole(graph, changed)) {
    return std::nullopt;
  }
  auto value = functional_form(graph, node);
  if (!value) return std::nullopt;
  const auto layouts = result_layouts(graph, *value);
  View wanted = graph.views[changed];
  wanted.buffer = kNone;
  if (layouts.size() != 1 || layouts[0] != wanted) return std::nullopt;
  Buffer buffer = graph.buffer_of(changed);
  buffer.version += versions[graph.views[changed].buffer];
  wanted.buffer = static_cast<BufferId>(graph.buffers.size());
  graph.buffers.push_back(std::move(buffer));
  value->results.push_back(Operand::of(graph.intern(wanted)));
  return value;
}

}  // namespace

void functionalize(Graph& graph) {
  std::vector<int64_t> versions;  // By buffer; its creation does not count.
  std::vector<BufferId> current;  // By buffer: the buffer with its current value.
  const auto now = [&](ViewId id) {
    if (id == kNone) return id;
    View view = graph.views[id];
    if (static_cast<size_t>(view.buffer) >= current.size() || current[view.buffer] == kNone)
      return id;
    view.buffer = current[view.buffer];
    return graph.intern(view);
  };
  for (Node& node : graph.nodes) {
    for (Operand& operand : node.arguments) {
      for (ViewId& view : operand.views) view = now(view);
    }
    versions.resize(graph.buffers.size(), kNone);
    for (const Access& access : accesses_of(node)) {
      if (access.writes) versions[graph.views[access.view].buffer] += 1;
    }
    auto value = as_value(graph, node, versions);
    if (!value) continue;
    const BufferId old = graph.views[node.arguments[0].views[0]].buffer;
    const BufferId fresh = graph.views[value->results[0].views[0]].buffer;
    current.resize(graph.buffers.size(), kNone);
    for (BufferId& buffer : current) {
      if (buffer == old) buffer = fresh;
    }
    current[old] = fresh;
    versions.resize(graph.buffers.size(), 0);
    value->origins = std::move(node.origins);
    node = std::move(*value);
  }
  for (ViewId& output : graph.outputs) output = now(output);
  compact(graph);
}

}  // namespace gallop::compile::passes
