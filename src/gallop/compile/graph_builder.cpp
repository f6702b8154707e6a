#include "gallop/compile/graph_builder.h"

#include <algorithm>

#include <fmt/format.h>

#include "gallop/base/source_context.h"
#include "gallop/compile/recordable.h"

namespace gallop::compile {

namespace {

// Whether the operator reads only the sizes of its argument.
bool reads_sizes_alone(const c10::OperatorHandle& op) { return op.schema().name() == "aten::fill"; }

}  // namespace

size_t GraphBuilder::ViewHash::operator()(const View& view) const {
  size_t hash = static_cast<size_t>(view.buffer) * 1000003 + static_cast<size_t>(view.offset);
  for (const int64_t size : view.sizes) hash = hash * 31 + static_cast<size_t>(size);
  for (const int64_t stride : view.strides) hash = hash * 37 + static_cast<size_t>(stride);
  return hash;
}

void GraphBuilder::refuse(std::string reason) {
  if (!refusal_.empty()) return;
  refusal_ = std::move(reason);
  const std::string source = SourceContext::current();
  if (!source.empty()) refusal_ += ": " + source;
}

void GraphBuilder::add_input(const at::Tensor& input) {
  std::string what = input.defined() ? unusual(input) : "is undefined";
  if (what.empty() && input.is_conj()) what = "is a lazy conjugate";
  if (!what.empty()) return refuse(fmt::format("argument {} {}", graph_.inputs.size(), what));
  const auto [place, fresh] = buffer_of_.try_emplace(key_of(input), new_buffer(input));
  Buffer& buffer = graph_.buffers[place->second];
  if (!fresh) refuse("two arguments share memory");
  buffer.kind = Buffer::Kind::kInput;
  buffer.input = static_cast<int64_t>(graph_.inputs.size());
  origin_of_[place->second] = input.storage_offset() * static_cast<int64_t>(input.element_size());
  graph_.inputs.push_back(view_of(input));
}

void GraphBuilder::add_output(const at::Tensor& result) {
  if (result.defined() && result.is_conj()) return refuse("a result is a lazy conjugate");
  graph_.outputs.push_back(result.defined() ? view_of(result) : kNone);
  if (graph_.outputs.back() != kNone) check_filled(graph_.outputs.back(), "a result");
}

// Holds the storage weakly: no other storage can take its address, yet its use count, which
// autograd reads, is unchanged.
BufferId GraphBuilder::new_buffer(const at::Tensor& tensor) {
  const auto& storage = tensor.storage();
  remembered_.emplace_back(c10::weak_intrusive_ptr<c10::StorageImpl>(storage.getWeakStorageImpl()));
  graph_.buffers.push_back({.bytes = static_cast<int64_t>(storage.nbytes()),
                            .device = tensor.device(),
                            .origin = static_cast<int64_t>(graph_.buffers.size())});
  origin_of_.push_back(0);
  filled_.push_back(true);
  return static_cast<BufferId>(graph_.buffers.size() - 1);
}

BufferId GraphBuilder::known_buffer_of(const at::Tensor& tensor) const {
  const auto found = buffer_of_.find(key_of(tensor));
  return found == buffer_of_.end() ? kNone : found->second;
}

void GraphBuilder::name(const at::Tensor& tensor, BufferId buffer) {
  buffer_of_.emplace(key_of(tensor), buffer);
}

BufferId GraphBuilder::buffer_of(const at::Tensor& tensor) {
  if (const BufferId known = known_buffer_of(tensor); known != kNone) return known;
  const BufferId id = new_buffer(tensor);
  graph_.buffers[id].kind = Buffer::Kind::kState;
  graph_.buffers[id].state = tensor.detach();
  name(tensor, id);
  return id;
}

ViewId GraphBuilder::view_of(const at::Tensor& tensor) {
  if (const std::string what = unusual(tensor); !what.empty()) {
    refuse("a tensor " + what);
    return kNone;
  }
  const BufferId buffer = buffer_of(tensor);
  const auto element = static_cast<int64_t>(tensor.element_size());
  const int64_t begin = tensor.storage_offset() * element - origin_of_[buffer];
  if (begin < 0 || begin % element != 0) {
    refuse("a tensor lies before an argument in its memory, or across its elements");
    return kNone;
  }
  View view{.buffer = buffer,
            .offset = begin / element,
            .sizes = tensor.sizes().vec(),
            .strides = tensor.strides().vec(),
            .dtype = tensor.scalar_type(),
            .is_conj = tensor.is_conj()};
  const auto [place, fresh] = view_ids_.try_emplace(view, graph_.views.size());
  if (fresh) graph_.views.push_back(std::move(view));
  return place->second;
}

Operand GraphBuilder::operand_of(const c10::IValue& value) {
  if (value.isTensor()) {
    const at::Tensor& tensor = value.toTensor();
    // An undefined tensor, or a scalar that was wrapped as a tensor.
    if (!tensor.defined())
      return {.kind = Operand::Kind::kTensor, .constant = {}, .views = {kNone}};
    if (tensor.unsafeGetTensorImpl()->is_wrapped_number()) return Operand::of(tensor);
    return Operand::of(view_of(tensor));
  }
  if (value.isTensorList() || value.isOptionalTensorList()) {
    Operand list{
        .kind = value.isTensorList() ? Operand::Kind::kTensors : Operand::Kind::kOptionalTensors,
        .constant = {},
        .views = {}};
    for (const c10::IValue& item : value.toListRef()) {
      const bool defined = item.isTensor() && item.toTensor().defined();
      list.views.push_back(defined ? view_of(item.toTensor()) : kNone);
    }
    return list;
  }
  return Operand::of(value);
}

Node GraphBuilder::node_of(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  Node node{.op = op, .arguments = {}, .results = {}};
  for (size_t i = stack.size() - op.schema().arguments().size(); i < stack.size(); ++i) {
    node.arguments.push_back(operand_of(stack[i]));
  }
  return node;
}

// Memory that no recorded operator has written was written without one.
void GraphBuilder::check_filled(ViewId view, const std::string& reader) {
  const BufferId buffer = graph_.views[view].buffer;
  if (!filled_[buffer]) {
    refuse(fmt::format("{} reads a tensor that was filled without an operator", reader));
  }
}

void GraphBuilder::add(Node node, const torch::jit::Stack& stack, size_t known, RecordedCall call) {
  for (const c10::IValue& value : stack) node.results.push_back(result_of(value, known));
  const auto& schema = node.op.schema();
  for (size_t i = 0; i < stack.size(); ++i) {
    const auto* alias = schema.returns()[i].alias_info();
    if (alias != nullptr && alias->isWrite() && stack[i].isTensor()) {
      check_size_kept(node, stack[i].toTensor());
    }
  }
  const bool resolves = resolves_conjugate(node);
  if (!refusal_.empty()) return;
  const bool makes_memory = graph_.buffers.size() > known;
  const bool asks = asks_for_sizes(node.op);
  const bool changes = schema.is_mutable() || waits_for_collective(node.op);
  if (!makes_memory && !changes && (asks || !node.results.empty())) return;
  if (!resolves) return append(std::move(node), std::move(call));
  const bool is_copy = name_of(node.op) == "aten::copy_";
  const ViewId result = is_copy ? node.arguments[0].views[0] : node.results[0].views[0];
  append(std::move(node), call);
  append({.op = c10::Dispatcher::singleton().findSchemaOrThrow("aten::conj_physical_", ""),
          .arguments = {Operand::of(result)},
          .results = {Operand::of(kNone)}},
         std::move(call));
}

// Whether the node copies a lazy conjugate, which becomes a copy of the memory, to be conjugated in
// place: passes may then treat all copies alike.
bool GraphBuilder::resolves_conjugate(Node& node) {
  const std::string name = name_of(node.op);
  const bool is_copy = name == "aten::copy_";
  if (!is_copy && name != "aten::clone") return false;
  ViewId& from = node.arguments[is_copy ? 1 : 0].views[0];
  if (from == kNone || !graph_.views[from].is_conj) return false;
  from = graph_.intern({.buffer = graph_.views[from].buffer,
                        .offset = graph_.views[from].offset,
                        .sizes = graph_.views[from].sizes,
                        .strides = graph_.views[from].strides,
                        .dtype = graph_.views[from].dtype});
  view_ids_.try_emplace(graph_.views[from], from);
  return !is_copy || c10::isComplexType(graph_.views[node.arguments[0].views[0]].dtype);
}

void GraphBuilder::append(Node node, RecordedCall call) {
  const bool is_empty = leaves_memory_as_it_is(node.op);
  for (const Access& access : accesses_of(node)) {
    const BufferId buffer = graph_.views[access.view].buffer;
    if (access.reads) call.read.push_back(buffer);
    if (access.reads && !reads_sizes_alone(node.op)) check_filled(access.view, name_of(node.op));
    if (!access.writes) continue;
    if (graph_.views[access.view].is_conj) return refuse("a lazy conjugate is written");
    call.written.push_back(buffer);
    filled_[buffer] = !is_empty || graph_.views[access.view].numel() == 0;
  }
  node.origins = {static_cast<int32_t>(calls_.size())};
  calls_.push_back(std::move(call));
  graph_.nodes.push_back(std::move(node));
}

Graph GraphBuilder::take() {
  RecordedCalls calls{.calls = std::move(calls_), .state = {}};
  for (const Buffer& buffer : graph_.buffers) calls.state.push_back(buffer.state);
  graph_.calls = std::make_shared<const RecordedCalls>(std::move(calls));
  return std::move(graph_);
}

// An operator may resize the tensor that it writes, and reallocate its memory.
void GraphBuilder::check_size_kept(const Node& node, const at::Tensor& written) {
  if (!refusal_.empty() || !written.defined()) return;
  const ViewId view = view_of(written);
  const bool kept =
      std::any_of(node.arguments.begin(), node.arguments.end(), [&](const Operand& argument) {
        return std::find(argument.views.begin(), argument.views.end(), view) !=
               argument.views.end();
      });
  if (!kept) refuse(name_of(node.op) + " changes the size of what it writes");
}

ViewId GraphBuilder::made(const at::Tensor& tensor, size_t known) {
  if (!tensor.defined()) return kNone;
  if (const std::string what = unusual(tensor); !what.empty()) {
    refuse("a tensor " + what);
    return kNone;
  }
  if (known_buffer_of(tensor) == kNone && tensor.is_conj()) {
    refuse("an operator makes a lazy conjugate");
    return kNone;
  }
  if (known_buffer_of(tensor) == kNone) name(tensor, new_buffer(tensor));
  const ViewId view = view_of(tensor);
  if (view == kNone || static_cast<size_t>(graph_.views[view].buffer) < known) return kNone;
  return view;
}

Operand GraphBuilder::result_of(const c10::IValue& value, size_t known) {
  Operand result{.kind = Operand::Kind::kTensor, .constant = {}, .views = {}};
  if (value.isTensor()) {
    result.views.push_back(made(value.toTensor(), known));
  } else if (value.isTensorList()) {
    result.kind = Operand::Kind::kTensors;
    for (const at::Tensor& item : value.toTensorList()) result.views.push_back(made(item, known));
  } else {
    result.kind = Operand::Kind::kConstant;
  }
  return result;
}

}  // namespace gallop::compile
