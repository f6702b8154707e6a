#include "gallop/compile/executor.h"

#include <algorithm>
#include <optional>
#include <string>

#include <ATen/autocast_mode.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/base/clock.h"
#include "gallop/base/error.h"
#include "gallop/base/trace.h"
#include "gallop/compile/memory_plan.h"
#include "gallop/compile/operand_value.h"
#include "gallop/compile/tensor_in.h"

namespace gallop::compile {

namespace {

// A snapshot must not be what exhausts the memory.
constexpr int64_t kMostSnapshotBytes = int64_t{256} << 20;

bool has_layout(const at::Tensor& tensor, const View& view) {
  if (!tensor.defined()) return false;
  if (tensor.scalar_type() != view.dtype || tensor.sizes() != view.sizes) return false;
  for (size_t i = 0; i < view.sizes.size(); ++i) {
    if (view.sizes[i] != 1 && tensor.stride(static_cast<int64_t>(i)) != view.strides[i] &&
        view.numel() != 0) {
      return false;
    }
  }
  return true;
}

std::string layout_text(c10::ScalarType dtype, at::IntArrayRef sizes, at::IntArrayRef strides) {
  return fmt::format("{} [{}] with strides [{}]", toString(dtype), fmt::join(sizes, ", "),
                     fmt::join(strides, ", "));
}

std::string layout_of(const at::Tensor& tensor) {
  return tensor.defined() ? layout_text(tensor.scalar_type(), tensor.sizes(), tensor.strides())
                          : "none";
}

// Whether the operator keeps what its backward operator needs only in grad mode.
bool asks_for_grad_mode(const Node& node) {
  return node.op.schema().name() == "aten::mkldnn_rnn_layer";
}

c10::Device device_of(const Graph& graph) {
  for (const Buffer& buffer : graph.buffers) {
    if (!buffer.device.is_cpu()) return buffer.device;
  }
  return c10::kCPU;
}

void wait_for(c10::Device device) {
  if (device.is_cpu()) return;
  c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
}

}  // namespace

Executor::Executor(Graph graph, std::shared_ptr<Arena> arena)
    : graph_(std::move(graph)),
      bases_(graph_.buffers.size()),
      origins_(graph_.buffers.size()),
      tensors_(graph_.views.size()),
      views_of_(graph_.buffers.size()),
      dead_after_(graph_.nodes.size()),
      arena_(std::move(arena)),
      made_at_(graph_.nodes.size()) {
  for (size_t id = 0; id < graph_.views.size(); ++id) {
    views_of_[graph_.views[id].buffer].push_back(static_cast<ViewId>(id));
  }
  const auto lives = lifetimes_of(graph_);
  for (size_t id = 0; id < graph_.buffers.size(); ++id) {
    const Buffer& buffer = graph_.buffers[id];
    if (buffer.kind == Buffer::Kind::kState) {
      bases_[id] = buffer.state;
    } else if (buffer.kind == Buffer::Kind::kTemporary && lives[id].last != kNone &&
               static_cast<size_t>(lives[id].last) < graph_.nodes.size()) {
      dead_after_[lives[id].last].push_back(static_cast<BufferId>(id));
    }
  }
  if (arena_) plan();
}

void Executor::plan() {
  const MemoryPlan memory = plan_memory(graph_, Arena::kMargin);
  plan_bytes_ = memory.bytes;
  if (plan_bytes_ > arena_->capacity()) {
    arena_ = nullptr;
    return;
  }
  const auto lives = lifetimes_of(graph_);
  for (size_t id = 0; id < graph_.buffers.size(); ++id) {
    if (memory.offsets[id] == kNone) continue;
    made_at_[lives[id].first].push_back(
        {.bytes = graph_.buffers[id].bytes, .offset = memory.offsets[id]});
  }
}

std::vector<at::Tensor> Executor::run(const std::vector<at::Tensor>& inputs) {
  return run(inputs, nullptr);
}

std::vector<double> Executor::time(const std::vector<at::Tensor>& inputs) {
  std::vector<double> seconds;
  seconds.reserve(graph_.nodes.size());
  run(inputs, &seconds);
  return seconds;
}

std::vector<at::Tensor> Executor::run(const std::vector<at::Tensor>& inputs,
                                      std::vector<double>* seconds) {
  const at::NoGradGuard no_grad;
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const c10::impl::ExcludeDispatchKeyGuard below_autocast(c10::autocast_dispatch_keyset);
  if (arena_ && arena_->is_spent()) arena_ = nullptr;
  called_ = 0;
  bind(inputs);
  const std::optional<Snapshot> before = has_finished_ ? std::nullopt : snapshot();
  KeptGenerators generators;
  if (before) keep_generators(generators);
  try {
    run_nodes(seconds);
    has_finished_ = true;
  } catch (const LayoutMismatch& mismatch) {
    if (arena_) arena_->place({});
    clear();
    if (!before) throw InternalError(mismatch.what());
    for (const auto& [tensor, copy] : *before) tensor.copy_(copy);
    generators.restore();
    throw;
  } catch (...) {
    if (arena_) arena_->place({});
    clear();
    throw;
  }
  if (arena_) arena_->place({});
  std::vector<at::Tensor> outputs;
  outputs.reserve(graph_.outputs.size());
  for (const ViewId output : graph_.outputs) {
    outputs.push_back(output == kNone ? at::Tensor() : result(output));
  }
  clear();
  return outputs;
}

// Those from which the nodes may draw.
void Executor::keep_generators(KeptGenerators& generators) const {
  generators.keep_default(c10::kCPU);
  for (const Buffer& buffer : graph_.buffers) generators.keep_default(buffer.device);
  for (const Node& node : graph_.nodes) {
    for (const Operand& operand : node.arguments) {
      const bool is_generator =
          operand.kind == Operand::Kind::kConstant && operand.constant.isGenerator();
      if (is_generator) generators.keep(operand.constant.toGenerator());
    }
  }
}

// The state and inputs that are written before the last node that makes a tensor, or nothing if
// they are large.
std::optional<Executor::Snapshot> Executor::snapshot() {
  const auto makes_tensor = [this](const Node& node) {
    return std::any_of(node.results.begin(), node.results.end(), [this](const Operand& result) {
      return std::any_of(result.views.begin(), result.views.end(), [this](ViewId view) {
        return view != kNone && graph_.buffer_of(view).kind == Buffer::Kind::kTemporary;
      });
    });
  };
  const auto last = std::find_if(graph_.nodes.rbegin(), graph_.nodes.rend(), makes_tensor);
  std::vector<bool> is_written(graph_.buffers.size());
  for (auto node = graph_.nodes.begin(); node != last.base(); ++node) {
    for (const Access& access : accesses_of(*node)) {
      if (access.writes) is_written[graph_.views[access.view].buffer] = true;
    }
  }
  int64_t bytes = 0;
  std::vector<at::Tensor> tensors;
  for (size_t id = 0; id < graph_.buffers.size(); ++id) {
    if (!is_written[id] || graph_.buffers[id].kind == Buffer::Kind::kTemporary) continue;
    const auto size = static_cast<int64_t>(bases_[id].storage().nbytes());
    tensors.push_back(tensor_in(bases_[id], c10::kByte, {size}, {1}, 0));
    bytes += size;
  }
  if (bytes > kMostSnapshotBytes) return std::nullopt;
  Snapshot copies;
  for (const at::Tensor& tensor : tensors) copies.emplace_back(tensor, tensor.clone());
  return copies;
}

void Executor::run_nodes(std::vector<double>* seconds) {
  const c10::Device device = seconds != nullptr ? device_of(graph_) : c10::kCPU;
  if (seconds != nullptr) wait_for(device);
  double start = seconds != nullptr ? monotonic_seconds() : 0;
  const TraceSpan span(SpanKind::kPhase, kGraphSpan, graph_.number);
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    const int64_t begin_ns = is_tracing() ? monotonic_nanoseconds() : 0;
    if (arena_) arena_->place(made_at_[i]);
    called_ = i + 1;
    call(graph_.nodes[i]);
    if (arena_) check_placed(i);
    if (observer_) tell(graph_.nodes[i]);
    free_dead(i);
    if (begin_ns != 0) {
      record_span(SpanKind::kOperator, graph_.nodes[i].op.schema().name(), begin_ns,
                  monotonic_nanoseconds(), static_cast<int64_t>(i));
    }
    if (seconds == nullptr) continue;
    wait_for(device);
    const double now = monotonic_seconds();
    seconds->push_back(now - start);
    start = now;
  }
}

bool Executor::has_changed(const at::Tensor& state) const {
  const auto end = graph_.nodes.begin() + static_cast<std::ptrdiff_t>(called_);
  return std::any_of(graph_.nodes.begin(), end, [&](const Node& node) {
    if (is_idle_in_dry_run(node.op)) return false;
    const auto accesses = accesses_of(node);
    return std::any_of(accesses.begin(), accesses.end(), [&](const Access& access) {
      const Buffer& buffer = graph_.buffer_of(access.view);
      return access.writes && buffer.kind == Buffer::Kind::kState &&
             buffer.state.is_alias_of(state);
    });
  });
}

// Drops the plan if an operator keeps a placed block that none of its results shows.
void Executor::check_placed(size_t node) {
  int64_t held = 0;
  for (const Arena::Block& block : made_at_[node])
    held += arena_->is_free(arena_->at(block)) ? 0 : 1;
  if (held == 0) return;
  for (const Operand& result : graph_.nodes[node].results) {
    for (const ViewId view : result.views) {
      if (view == kNone) continue;
      const at::Tensor& made = bases_[graph_.views[view].buffer];
      // If two views share a buffer, only the first counts.
      if (made.is_same(tensors_[view]) && arena_->contains(made.storage().data())) held -= 1;
    }
  }
  if (held > 0) drop_plan();
}

void Executor::drop_plan() {
  arena_->place({});
  arena_->spend();
  arena_ = nullptr;
}

void Executor::free_dead(size_t node) {
  for (const BufferId buffer : dead_after_[node]) {
    const at::Tensor& base = bases_[buffer];
    const void* data = arena_ && base.defined() ? base.storage().data() : nullptr;
    for (const ViewId view : views_of_[buffer]) tensors_[view].reset();
    bases_[buffer].reset();
    if (data != nullptr && arena_->contains(data) && !arena_->is_free(data)) drop_plan();
  }
}

void Executor::bind(const std::vector<at::Tensor>& inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ViewId view = graph_.inputs[i];
    const BufferId buffer = graph_.views[view].buffer;
    bases_[buffer] = inputs[i];
    origins_[buffer] = inputs[i].storage_offset() * static_cast<int64_t>(inputs[i].element_size());
    tensors_[view] = inputs[i];
  }
}

const at::Tensor& Executor::tensor(ViewId id) {
  at::Tensor& tensor = tensors_[id];
  if (!tensor.defined()) {
    const View& view = graph_.views[id];
    const auto element = static_cast<int64_t>(c10::elementSize(view.dtype));
    if (origins_[view.buffer] % element != 0) {
      throw UsageError(
          fmt::format("an argument is taken as {}, of {} bytes each, and begins at byte {}",
                      toString(view.dtype), element, origins_[view.buffer]));
    }
    tensor = tensor_in(bases_[view.buffer], view.dtype, view.sizes, view.strides,
                       origins_[view.buffer] / element + view.offset, view.is_conj);
  }
  return tensor;
}

// The executor keeps its tensors of state, as the caller may resize those that it gets.
at::Tensor Executor::result(ViewId id) {
  const at::Tensor& own = tensor(id);
  if (graph_.buffer_of(id).kind != Buffer::Kind::kState) return own;
  return tensor_in(own, own.scalar_type(), own.sizes(), own.strides(), own.storage_offset());
}

c10::IValue Executor::value_of(const Operand& operand) {
  return compile::value_of(operand, [this](ViewId id) -> const at::Tensor& { return tensor(id); });
}

void Executor::call(const Node& node) {
  stack_.clear();
  for (const Operand& argument : node.arguments) stack_.push_back(value_of(argument));
  if (asks_for_grad_mode(node)) {
    const at::AutoGradMode with_gradients(true);
    node.op.callBoxed(stack_);
  } else {
    node.op.callBoxed(stack_);
  }
  take_results(node);
}

void Executor::take_results(const Node& node) {
  for (size_t i = 0; i < node.results.size(); ++i) {
    const Operand& result = node.results[i];
    if (result.kind == Operand::Kind::kTensor) {
      take_result(result.views[0], stack_[i].toTensor(), node);
    } else if (result.kind == Operand::Kind::kTensors) {
      const auto list = stack_[i].toTensorList();
      for (size_t j = 0; j < result.views.size(); ++j) take_result(result.views[j], list[j], node);
    }
  }
  stack_.clear();
}

void Executor::take_result(ViewId id, const at::Tensor& result, const Node& node) {
  if (id == kNone) return;
  const View& view = graph_.views[id];
  if (!has_layout(result, view)) {
    throw LayoutMismatch(fmt::format(
        "{} made a tensor of another layout than when it was recorded ({} instead of {}){}",
        name_of(node.op), layout_of(result), layout_text(view.dtype, view.sizes, view.strides),
        source_of(graph_, node)));
  }
  tensors_[id] = result;
  if (!bases_[view.buffer].defined()) bases_[view.buffer] = result;
}

void Executor::tell(const Node& node) {
  for (const Access& access : accesses_of(node)) {
    if (!access.writes) continue;
    observer_(node, graph_.buffer_of(access.view), tensor(access.view));
  }
}

void Executor::clear() {
  stack_.clear();
  for (size_t id = 0; id < graph_.buffers.size(); ++id) {
    if (graph_.buffers[id].kind == Buffer::Kind::kState) continue;
    for (const ViewId view : views_of_[id]) tensors_[view].reset();
    bases_[id].reset();
  }
}

}  // namespace gallop::compile
