#include "gallop/compile/analysis.h"

#include <algorithm>
#include <map>

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/stack.h>
#include <ATen/ops/empty_strided.h>

namespace gallop::compile {

namespace {

void note(std::vector<int64_t>& list, int64_t node) {
  if (list.empty() || list.back() != node) list.push_back(node);
}

bool same_strides(const View& a, const View& b) {
  if (a.sizes != b.sizes) return false;
  for (size_t i = 0; i < a.sizes.size(); ++i) {
    if (a.sizes[i] != 1 && a.strides[i] != b.strides[i]) return false;
  }
  return true;
}

// Calls `change` for every view id in the graph.
template <typename Change>
void for_each_view(Graph& graph, const Change& change) {
  for (Node& node : graph.nodes) {
    for (auto* operands : {&node.arguments, &node.results}) {
      for (Operand& operand : *operands) {
        for (ViewId& view : operand.views) {
          if (view != kNone) change(view);
        }
      }
    }
  }
  for (auto* list : {&graph.inputs, &graph.outputs}) {
    for (ViewId& view : *list) {
      if (view != kNone) change(view);
    }
  }
}

}  // namespace

std::vector<Uses> uses_of(const Graph& graph) {
  std::vector<Uses> uses(graph.buffers.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const Access& access : accesses_of(graph.nodes[i])) {
      Uses& of_buffer = uses[graph.views[access.view].buffer];
      if (access.reads) note(of_buffer.readers, static_cast<int64_t>(i));
      if (access.writes) note(of_buffer.writers, static_cast<int64_t>(i));
    }
  }
  for (const ViewId output : graph.outputs) {
    if (output != kNone) uses[graph.views[output].buffer].is_output = true;
  }
  return uses;
}

std::vector<std::vector<Touch>> touches_of(const Graph& graph) {
  std::vector<std::vector<Touch>> all;
  all.reserve(graph.nodes.size());
  std::map<BufferId, std::vector<BufferId>> under_way;  // By the buffer that a collective writes.
  for (const Node& node : graph.nodes) {
    auto& touches = all.emplace_back();
    std::vector<BufferId> read;
    for (const Access& access : accesses_of(node)) {
      const BufferId buffer = graph.views[access.view].buffer;
      touches.push_back({.buffer = buffer, .reads = access.reads, .writes = access.writes});
      if (access.reads) read.push_back(buffer);
    }
    const size_t own = touches.size();
    for (size_t i = 0; i < own; ++i) {
      if (!touches[i].writes) continue;
      if (starts_collective(node.op)) under_way[touches[i].buffer] = read;
      if (!waits_for_collective(node.op)) continue;
      for (const BufferId buffer : under_way[touches[i].buffer]) {
        touches.push_back({.buffer = buffer, .reads = true, .writes = false});
      }
      under_way.erase(touches[i].buffer);
    }
  }
  return all;
}

bool is_unchanged_between(const Uses& uses, int64_t from, int64_t to) {
  const auto [first, last] = std::minmax(from, to);
  return std::none_of(
      uses.writers.begin(), uses.writers.end(),
      [first = first, last = last](int64_t writer) { return first <= writer && writer < last; });
}

bool is_value(const Graph& graph, const std::vector<Uses>& uses, BufferId buffer) {
  return graph.buffers[buffer].kind == Buffer::Kind::kTemporary && uses[buffer].writers.size() == 1;
}

bool is_on_gpu(const Graph& graph) {
  return std::any_of(graph.buffers.begin(), graph.buffers.end(),
                     [](const Buffer& buffer) { return buffer.device.is_cuda(); });
}

bool is_pure(const Node& node) {
  if (is_random(node.op) || starts_collective(node.op)) return false;
  const auto accesses = accesses_of(node);
  size_t made = 0;
  for (const Operand& result : node.results) {
    made += static_cast<size_t>(std::count_if(result.views.begin(), result.views.end(),
                                              [](ViewId v) { return v != kNone; }));
  }
  const auto writes = static_cast<size_t>(std::count_if(
      accesses.begin(), accesses.end(), [](const Access& access) { return access.writes; }));
  return made > 0 && writes == made;
}

bool is_whole(const Graph& graph, ViewId view) {
  const View& of = graph.views[view];
  const auto element = static_cast<int64_t>(c10::elementSize(of.dtype));
  return of.is_dense() && of.offset == 0 && of.numel() * element == graph.buffers[of.buffer].bytes;
}

bool is_contiguous(const View& view) {
  int64_t expected = 1;
  for (size_t i = view.sizes.size(); i-- > 0;) {
    if (view.sizes[i] != 1 && view.strides[i] != expected) return false;
    expected *= view.sizes[i];
  }
  return true;
}

View transposed(View view) {
  if (view.sizes.size() != 2) return view;
  std::swap(view.sizes[0], view.sizes[1]);
  std::swap(view.strides[0], view.strides[1]);
  return view;
}

bool same_elements(const Graph& graph, ViewId a, ViewId b) {
  if (a == b) return true;
  const View &x = graph.views[a], &y = graph.views[b];
  if (x.buffer != y.buffer || x.offset != y.offset || x.dtype != y.dtype ||
      x.is_conj != y.is_conj) {
    return false;
  }
  return same_strides(x, y) || (x.numel() == y.numel() && is_contiguous(x) && is_contiguous(y));
}

void remove_nodes(Graph& graph, const std::vector<bool>& removed) {
  std::vector<Node> kept;
  kept.reserve(graph.nodes.size());
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!removed[i]) kept.push_back(std::move(graph.nodes[i]));
  }
  graph.nodes = std::move(kept);
}

void compact(Graph& graph) {
  std::vector<ViewId> view_ids(graph.views.size(), kNone);
  std::vector<BufferId> buffer_ids(graph.buffers.size(), kNone);
  Graph kept;
  std::map<std::tuple<BufferId, int64_t, std::vector<int64_t>, std::vector<int64_t>, int, bool>,
           ViewId>
      known;
  const auto keep = [&](ViewId& id) {
    ViewId& now = view_ids[id];
    if (now == kNone) {
      View view = graph.views[id];
      BufferId& buffer = buffer_ids[view.buffer];
      if (buffer == kNone) {
        buffer = static_cast<BufferId>(kept.buffers.size());
        kept.buffers.push_back(graph.buffers[view.buffer]);
      }
      view.buffer = buffer;
      const auto [place, fresh] =
          known.try_emplace({view.buffer, view.offset, view.sizes, view.strides,
                             static_cast<int>(view.dtype), view.is_conj},
                            static_cast<ViewId>(kept.views.size()));
      if (fresh) kept.views.push_back(std::move(view));
      now = place->second;
    }
    id = now;
  };
  for_each_view(graph, keep);
  graph.views = std::move(kept.views);
  graph.buffers = std::move(kept.buffers);
}

std::vector<View> result_layouts(const Graph& graph, const Node& node) {
  const at::NoGradGuard no_grad;
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const auto meta = [&](ViewId id) {
    if (id == kNone) return at::Tensor();
    const View& view = graph.views[id];
    return at::empty_strided(view.sizes, view.strides,
                             at::TensorOptions(view.dtype).device(c10::kMeta));
  };
  torch::jit::Stack stack;
  for (const Operand& operand : node.arguments) {
    switch (operand.kind) {
      case Operand::Kind::kConstant: stack.push_back(operand.constant); break;
      case Operand::Kind::kTensor: stack.emplace_back(meta(operand.views[0])); break;
      case Operand::Kind::kTensors: {
        c10::List<at::Tensor> list;
        for (const ViewId view : operand.views) list.push_back(meta(view));
        stack.emplace_back(list);
        break;
      }
      case Operand::Kind::kOptionalTensors: return {};
    }
  }
  try {
    // These have no implementation for meta tensors, but clamp_min has one.
    const std::string name = name_of(node.op);
    const bool is_missing =
        name == "aten::relu" || name == "aten::hardswish" || name == "aten::hardtanh";
    if (is_missing) stack = {stack[0], 0};
    const auto op = is_missing
                        ? c10::Dispatcher::singleton().findSchemaOrThrow("aten::clamp_min", "")
                        : node.op;
    op.callBoxed(stack);
  } catch (const c10::Error&) {
    return {};
  }
  std::vector<View> layouts;
  for (const c10::IValue& value : stack) {
    if (!value.isTensor() || !value.toTensor().defined()) return {};
    const at::Tensor& tensor = value.toTensor();
    layouts.push_back({.buffer = kNone,
                       .offset = tensor.storage_offset(),
                       .sizes = tensor.sizes().vec(),
                       .strides = tensor.strides().vec(),
                       .dtype = tensor.scalar_type()});
  }
  return layouts;
}

}  // namespace gallop::compile
