#include "gallop/compile/deferred_calls.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/empty_strided.h>

#include "gallop/compile/tensor_in.h"

namespace gallop::compile {

namespace {

using torch::jit::Stack;

constexpr int64_t kMostNewBytes = 4096;

// The tensor argument that the operator changes and returns as this result.
std::optional<size_t> returned_argument(const c10::FunctionSchema& schema, size_t result) {
  const auto* alias = schema.returns()[result].alias_info();
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const auto* of_argument = schema.arguments()[i].alias_info();
    if (of_argument != nullptr && of_argument->isWrite() && *of_argument == *alias) return i;
  }
  return std::nullopt;
}

at::Tensor new_tensor(const View& layout, at::Device device) {
  return at::empty_strided(layout.sizes, layout.strides,
                           at::TensorOptions(layout.dtype).device(device));
}

// Another tensor with the same memory and sizes.
at::Tensor twin_of(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.unsafeGetTensorImpl()->is_wrapped_number()) return tensor;
  return tensor_in(tensor, tensor.scalar_type(), tensor.sizes(), tensor.strides(),
                   tensor.storage_offset(), tensor.is_conj());
}

c10::IValue twin_of(const c10::IValue& value) {
  if (value.isTensor()) return twin_of(value.toTensor());
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& item : value.toTensorList()) list.push_back(twin_of(item));
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const std::optional<at::Tensor> item : value.toOptionalTensorList()) {
      list.push_back(item ? std::optional(twin_of(*item)) : std::nullopt);
    }
    return list;
  }
  return value;
}

}  // namespace

std::vector<Touch> touches_of_call(const Graph& graph, const Node& node) {
  const auto& arguments = node.op.schema().arguments();
  Node taken{.op = node.op, .arguments = node.arguments, .results = {}};
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto* alias = arguments[i].alias_info();
    if (alias != nullptr && !alias->isWrite()) taken.arguments[i].views.clear();
  }
  std::vector<Touch> touches;
  for (const Access& access : accesses_of(taken)) {
    touches.push_back({.buffer = graph.views[access.view].buffer,
                       .reads = access.reads,
                       .writes = access.writes});
  }
  return touches;
}

std::optional<Stack> DeferredCalls::results_of(const Graph& graph, const Node& node,
                                               const Stack& arguments) {
  if (is_random(node.op) || starts_collective(node.op) || waits_for_collective(node.op)) {
    return std::nullopt;
  }
  const auto& schema = node.op.schema();
  for (const c10::Argument& argument : schema.arguments()) {
    if (argument.is_out()) return std::nullopt;
  }
  std::optional<at::Device> device;
  for (const Touch& touch : touches_of_call(graph, node)) {
    if (!touch.writes) continue;
    const Buffer& buffer = graph.buffers[touch.buffer];
    if (buffer.kind == Buffer::Kind::kTemporary) return std::nullopt;
    device = buffer.device;
  }
  if (!device) return std::nullopt;
  const auto& returns = schema.returns();
  const bool makes_any = std::any_of(returns.begin(), returns.end(), [](const auto& result) {
    return result.alias_info() == nullptr;
  });
  const auto layouts = makes_any ? result_layouts(graph, node) : std::vector<View>();
  if (makes_any && layouts.size() != returns.size()) return std::nullopt;
  Stack results;
  int64_t new_bytes = 0;
  for (size_t i = 0; i < returns.size(); ++i) {
    if (returns[i].type()->kind() != c10::TypeKind::TensorType) return std::nullopt;
    if (returns[i].alias_info() == nullptr) {
      new_bytes += layouts[i].numel() * static_cast<int64_t>(c10::elementSize(layouts[i].dtype));
      if (new_bytes > kMostNewBytes) return std::nullopt;
      results.emplace_back(new_tensor(layouts[i], *device));
      continue;
    }
    const auto argument = returned_argument(schema, i);
    if (!argument) return std::nullopt;
    results.push_back(arguments[arguments.size() - schema.arguments().size() + *argument]);
  }
  return results;
}

void DeferredCalls::add(Call call) {
  for (c10::IValue& value : call.arguments) value = twin_of(value);
  calls_.push_back(std::move(call));
}

bool DeferredCalls::changes(BufferId buffer) const {
  return std::any_of(calls_.begin(), calls_.end(), [&](const Call& call) {
    return std::any_of(call.touches.begin(), call.touches.end(),
                       [&](const Touch& touch) { return touch.writes && touch.buffer == buffer; });
  });
}

bool DeferredCalls::must_precede(const std::vector<Touch>& touches) const {
  for (const Call& call : calls_) {
    for (const Touch& own : call.touches) {
      for (const Touch& other : touches) {
        if (own.buffer == other.buffer && (own.writes || other.writes)) return true;
      }
    }
  }
  return false;
}

std::vector<DeferredCalls::Call> DeferredCalls::take() { return std::exchange(calls_, {}); }

}  // namespace gallop::compile
