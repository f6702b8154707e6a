#include "gallop/compile/recorder.h"

#include <algorithm>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>

#include <ATen/Context.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/Generator.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/stack.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <fmt/format.h>
#include <torch/library.h>

#include "gallop/compile/compiled_function.h"
#include "gallop/compile/put_off_calls.h"
#include "gallop/compile/recordable.h"
#include "gallop/compile/tensor_in.h"

namespace gallop::compile {

namespace {

using torch::jit::Stack;

// The only key below autograd and autocast that LibTorch itself leaves to others.
constexpr auto kKey = c10::DispatchKey::Fake;

struct ViewHash {
  size_t operator()(const View& view) const {
    size_t hash = static_cast<size_t>(view.buffer) * 1000003 + static_cast<size_t>(view.offset);
    for (const int64_t size : view.sizes) hash = hash * 31 + static_cast<size_t>(size);
    for (const int64_t stride : view.strides) hash = hash * 37 + static_cast<size_t>(stride);
    return hash;
  }
};

// Ends the call of a function that cannot be recorded, before it has an effect.
struct Refused : std::exception {
  const char* what() const noexcept override { return "the function cannot be recorded"; }
};

// Puts random generators back at its end: those of the devices, and others before they are used.
class KeptGenerators {
 public:
  explicit KeptGenerators(const std::vector<at::Tensor>& inputs) {
    keep(at::globalContext().defaultGenerator(c10::kCPU));
    for (const at::Tensor& input : inputs) {
      if (input.defined() && input.is_cuda()) {
        keep(at::globalContext().defaultGenerator(input.device()));
      }
    }
  }
  ~KeptGenerators() {
    for (auto& [generator, state] : kept_) generator.set_state(state);
  }
  KeptGenerators(const KeptGenerators&) = delete;
  KeptGenerators& operator=(const KeptGenerators&) = delete;

  void keep(const at::Generator& generator) {
    const bool known = std::any_of(kept_.begin(), kept_.end(),
                                   [&](const auto& kept) { return kept.first == generator; });
    if (!known) kept_.emplace_back(generator, generator.get_state());
  }

 private:
  std::vector<std::pair<at::Generator, at::Tensor>> kept_;
};

class Recorder {
 public:
  Recorder(const std::vector<at::Tensor>& inputs, KeptGenerators& generators)
      : inputs_(inputs), generators_(generators) {
    for (const at::Tensor& input : inputs) {
      const std::string what = input.defined() ? unusual(input) : "is undefined";
      if (!what.empty()) {
        refuse(fmt::format("argument {} {}", graph_.inputs.size(), what));
        return;
      }
      const auto [place, fresh] = buffer_of_.try_emplace(key_of(input), new_buffer(input));
      Buffer& buffer = graph_.buffers[place->second];
      if (!fresh) refuse("two arguments share memory");
      buffer.kind = Buffer::Kind::kInput;
      buffer.input = static_cast<int64_t>(graph_.inputs.size());
      origin_of_[place->second] =
          input.storage_offset() * static_cast<int64_t>(input.element_size());
      graph_.inputs.push_back(view_of(input));
    }
  }

  // Runs the call without effect on state, and notes it.
  void call(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack& stack) {
    const c10::impl::ExcludeDispatchKeyGuard not_again(kKey);
    calls_ += 1;
    std::optional<Node> node;
    if (changes_only_sizes(op)) {
      check_may_change_sizes(op, stack);
      if (!refusal_.empty()) throw Refused();
    } else if (op.schema().name().rfind("profiler::", 0) != 0) {
      node = node_of(op, stack);
      if (!refusal_.empty()) throw Refused();
      if (put_off(*node, keys, stack)) return;
      use_copies(*node, stack);
    }
    const size_t known = graph_.buffers.size();
    op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kKey), &stack);
    if (node) note_results(std::move(*node), stack, known);
    if (!refusal_.empty()) throw Refused();
  }

  Recording finish(std::vector<at::Tensor> results, Outcome outcome) {
    for (const at::Tensor& result : results) {
      graph_.outputs.push_back(result.defined() ? view_of(result) : kNone);
      if (graph_.outputs.back() != kNone) check_filled(graph_.outputs.back(), "a result");
      if (!refusal_.empty()) return refused();
    }
    if (!refusal_.empty()) return refused();
    if (outcome == Outcome::kWanted) {
      make_up_for_calls();
      for (at::Tensor& result : results) result = current(result);
    } else {
      results.clear();
      copies_.clear();
    }
    Recording recording{.graph = std::move(graph_),
                        .refusal = {},
                        .results = std::move(results),
                        .changes = {},
                        .calls = calls_};
    for (const auto& [buffer, copy] : copies_) {
      const Buffer& changed = recording.graph.buffers[buffer];
      recording.changes.push_back(
          {.state = changed.kind == Buffer::Kind::kState ? changed.state : inputs_[changed.input],
           .after = copy});
    }
    return recording;
  }

  bool has_refused() const { return !refusal_.empty(); }
  Recording refused() {
    return {.graph = {}, .refusal = refusal_, .results = {}, .changes = {}, .calls = calls_};
  }

 private:
  using Key = const c10::StorageImpl*;

  static Key key_of(const at::Tensor& tensor) { return tensor.storage().unsafeGetStorageImpl(); }

  void refuse(std::string reason) {
    if (refusal_.empty()) refusal_ = std::move(reason);
  }

  // Weakly held, so that no other storage takes the address while this one is remembered, and yet
  // autograd sees the count of owners that it would see without us.
  BufferId new_buffer(const at::Tensor& tensor) {
    const auto& storage = tensor.storage();
    remembered_.emplace_back(
        c10::weak_intrusive_ptr<c10::StorageImpl>(storage.getWeakStorageImpl()));
    graph_.buffers.push_back({.bytes = static_cast<int64_t>(storage.nbytes()),
                              .device = tensor.device(),
                              .origin = static_cast<int64_t>(graph_.buffers.size())});
    origin_of_.push_back(0);
    filled_.push_back(true);
    return static_cast<BufferId>(graph_.buffers.size() - 1);
  }

  bool is_known(const at::Tensor& tensor) const { return buffer_of_.contains(key_of(tensor)); }

  // A tensor that was there before the call is state.
  BufferId buffer_of(const at::Tensor& tensor) {
    if (const auto found = buffer_of_.find(key_of(tensor)); found != buffer_of_.end()) {
      return found->second;
    }
    const BufferId id = new_buffer(tensor);
    graph_.buffers[id].kind = Buffer::Kind::kState;
    graph_.buffers[id].state = tensor.detach();
    buffer_of_.emplace(key_of(tensor), id);
    return id;
  }

  // Whether the call is noted and put off: where what it reads takes less memory than copies of the
  // state that it changes. If not, calls that must precede it are made.
  bool put_off(const Node& node, c10::DispatchKeySet keys, Stack& stack) {
    auto touches = touches_of_call(graph_, node);
    const bool comes_after = put_off_calls_.must_precede(touches);
    int64_t copied = 0, kept = 0;
    for (const Touch& touch : touches) {
      const Buffer& buffer = graph_.buffers[touch.buffer];
      if (buffer.kind == Buffer::Kind::kTemporary) {
        kept += touch.reads ? buffer.bytes : 0;
      } else if (touch.writes && !copies_.contains(touch.buffer)) {
        copied += buffer.bytes;
      }
    }
    std::optional<Stack> results;
    if (copied > 0 && copied >= kept) results = PutOffCalls::results_of(graph_, node, stack);
    if (!results) {
      if (comes_after) make_up_for_calls();
      return false;
    }
    const size_t known = graph_.buffers.size();
    note_results(node, *results, known);
    if (!refusal_.empty()) throw Refused();
    for (size_t made = known; made < graph_.buffers.size(); ++made) {
      touches.push_back({.buffer = static_cast<BufferId>(made), .reads = false, .writes = true});
    }
    const size_t count = node.op.schema().arguments().size();
    const auto first = stack.end() - static_cast<std::ptrdiff_t>(count);
    put_off_calls_.add({.node = node,
                        .keys = keys,
                        .arguments = {first, stack.end()},
                        .results = *results,
                        .touches = std::move(touches)});
    stack.erase(first, stack.end());
    stack.insert(stack.end(), results->begin(), results->end());
    return true;
  }

  void make_up_for_calls() {
    const at::NoGradGuard no_grad;
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const c10::impl::ExcludeDispatchKeyGuard below_autocast(c10::autocast_dispatch_keyset);
    const c10::impl::ExcludeDispatchKeyGuard not_again(kKey);
    for (PutOffCalls::Call& call : put_off_calls_.take()) {
      Stack& stack = call.arguments;
      use_copies(call.node, stack);
      call.node.op.redispatchBoxed(
          call.keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kKey), &stack);
      const auto& returns = call.node.op.schema().returns();
      for (size_t i = 0; i < returns.size(); ++i) {
        if (returns[i].alias_info() == nullptr) {
          call.results[i].toTensor().copy_(stack[i].toTensor());
        }
      }
    }
  }

  // State that is written lives on in a copy, for this call.
  void use_copies(const Node& node, Stack& stack) {
    for (const Access& access : accesses_of(node)) {
      const BufferId id = graph_.views[access.view].buffer;
      const Buffer& buffer = graph_.buffers[id];
      if (!access.writes || buffer.kind == Buffer::Kind::kTemporary || copies_.contains(id)) {
        continue;
      }
      const at::Tensor& base =
          buffer.kind == Buffer::Kind::kState ? buffer.state : inputs_[buffer.input];
      const at::Tensor copy =
          tensor_in(base, c10::kByte, {buffer.bytes}, {1}, /*offset=*/0).clone();
      buffer_of_.emplace(key_of(copy), id);
      copies_.emplace(id, copy);
    }
    if (copies_.empty()) return;
    const auto& arguments = node.op.schema().arguments();
    for (size_t i = 0; i < arguments.size(); ++i) {
      const auto* alias = arguments[i].alias_info();
      if (alias != nullptr && !alias->isWrite()) continue;  // Only a view is taken.
      c10::IValue& value = stack[stack.size() - arguments.size() + i];
      if (value.isTensor() && value.toTensor().defined()) {
        value = current(value.toTensor());
      } else if (value.isTensorList()) {
        c10::List<at::Tensor> list;
        for (const at::Tensor& item : value.toTensorList()) list.push_back(current(item));
        value = list;
      } else if (value.isOptionalTensorList()) {
        c10::List<std::optional<at::Tensor>> list;
        for (const std::optional<at::Tensor> item : value.toOptionalTensorList()) {
          list.push_back(item ? std::optional(current(*item)) : std::nullopt);
        }
        value = list;
      }
    }
  }

  // The tensor as it is within this call.
  at::Tensor current(const at::Tensor& tensor) const {
    if (!tensor.defined() || tensor.unsafeGetTensorImpl()->is_wrapped_number()) return tensor;
    const auto buffer = buffer_of_.find(key_of(tensor));
    if (buffer == buffer_of_.end()) return tensor;
    const auto copy = copies_.find(buffer->second);
    if (copy == copies_.end() || copy->second.is_alias_of(tensor)) return tensor;
    return tensor_in(copy->second, tensor.scalar_type(), tensor.sizes(), tensor.strides(),
                     tensor.storage_offset());
  }

  ViewId view_of(const at::Tensor& tensor) {
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
              .dtype = tensor.scalar_type()};
    const auto [place, fresh] = view_ids_.try_emplace(view, graph_.views.size());
    if (fresh) graph_.views.push_back(std::move(view));
    return place->second;
  }

  Operand operand_of(const c10::IValue& value) {
    if (value.isTensor()) {
      const at::Tensor& tensor = value.toTensor();
      // A number that became a tensor on its way.
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
    if (value.isGenerator()) generators_.keep(value.toGenerator());
    return Operand::of(value);
  }

  // The caller's own tensors would stay changed.
  void check_may_change_sizes(const c10::OperatorHandle& op, const Stack& stack) {
    const at::Tensor& tensor = stack[stack.size() - op.schema().arguments().size()].toTensor();
    const auto known = buffer_of_.find(key_of(tensor));
    const bool is_own =
        known != buffer_of_.end() && graph_.buffers[known->second].kind == Buffer::Kind::kTemporary;
    if (!is_own && op.schema().name() != "aten::detach_") {
      refuse(name_of(op) + " changes the sizes of a tensor that was there before");
    }
  }

  std::optional<Node> node_of(const c10::OperatorHandle& op, const Stack& stack) {
    const auto& schema = op.schema();
    const size_t count = schema.arguments().size();
    if (const std::string reason = why_not_recorded(op, stack); !reason.empty()) {
      refuse(name_of(op) + " " + reason);
      return std::nullopt;
    }
    Node node{.op = op, .arguments = {}, .results = {}};
    for (size_t i = stack.size() - count; i < stack.size(); ++i) {
      node.arguments.push_back(operand_of(stack[i]));
    }
    if (!refusal_.empty()) return std::nullopt;
    return node;
  }

  // Memory that nobody was seen to write was written without an operator.
  void check_filled(ViewId view, const std::string& reader) {
    const BufferId buffer = graph_.views[view].buffer;
    if (!filled_[buffer]) {
      refuse(fmt::format("{} reads a tensor that was filled without an operator", reader));
    }
  }

  void note_results(Node node, const Stack& stack, size_t known) {
    for (const c10::IValue& value : stack) node.results.push_back(result_of(value, known));
    const auto& schema = node.op.schema();
    for (size_t i = 0; i < stack.size(); ++i) {
      const auto* alias = schema.returns()[i].alias_info();
      if (alias != nullptr && alias->isWrite() && stack[i].isTensor()) {
        check_size_kept(node, stack[i].toTensor());
      }
    }
    if (!refusal_.empty()) return;
    const bool makes_memory = graph_.buffers.size() > known;
    const bool asks = asks_for_sizes(node.op);
    const bool changes = schema.is_mutable() || waits_for_collective(node.op);
    if (!makes_memory && !changes && (asks || !node.results.empty())) return;
    const bool is_empty = leaves_memory_as_it_is(node.op);
    for (const Access& access : accesses_of(node)) {
      if (access.reads) check_filled(access.view, name_of(node.op));
      if (!access.writes) continue;
      const BufferId buffer = graph_.views[access.view].buffer;
      filled_[buffer] = !is_empty || graph_.views[access.view].numel() == 0;
    }
    graph_.nodes.push_back(std::move(node));
  }

  // An operator may give what it writes other sizes, and other memory with it.
  void check_size_kept(const Node& node, const at::Tensor& written) {
    if (!refusal_.empty() || !written.defined()) return;
    const ViewId view = view_of(written);
    const bool kept =
        std::any_of(node.arguments.begin(), node.arguments.end(), [&](const Operand& argument) {
          return std::find(argument.views.begin(), argument.views.end(), view) !=
                 argument.views.end();
        });
    if (!kept) refuse(name_of(node.op) + " changes the size of what it writes");
  }

  ViewId made(const at::Tensor& tensor, size_t known) {
    if (!tensor.defined()) return kNone;
    if (const std::string what = unusual(tensor); !what.empty()) {
      refuse("a tensor " + what);
      return kNone;
    }
    if (!is_known(tensor)) buffer_of_.emplace(key_of(tensor), new_buffer(tensor));
    const ViewId view = view_of(tensor);
    if (view == kNone || static_cast<size_t>(graph_.views[view].buffer) < known) return kNone;
    return view;
  }

  Operand result_of(const c10::IValue& value, size_t known) {
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

  const std::vector<at::Tensor>& inputs_;
  KeptGenerators& generators_;
  Graph graph_;
  std::string refusal_;
  int64_t calls_ = 0;
  std::map<BufferId, at::Tensor> copies_;  // Of state, as bytes.
  PutOffCalls put_off_calls_;
  std::unordered_map<Key, BufferId> buffer_of_;
  std::unordered_map<View, ViewId, ViewHash> view_ids_;
  std::vector<c10::weak_intrusive_ptr<c10::StorageImpl>> remembered_;
  std::vector<int64_t> origin_of_;  // The byte of its buffer where an argument begins.
  std::vector<bool> filled_;        // Whether somebody wrote the buffer.
};

// Backward passes on a GPU run in threads of the autograd engine, which know no thread's variables
// but the dispatcher's keys.
std::mutex recording_mutex;
Recorder* active_recorder = nullptr;

void on_call(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  // An operator that consists of others is seen by those.
  const bool composite = op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd) &&
                         !op.hasKernelForDispatchKey(c10::DispatchKey::CPU) &&
                         !op.hasKernelForDispatchKey(c10::DispatchKey::CUDA);
  if (composite) {
    op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kKey), stack);
    return;
  }
  active_recorder->call(op, keys, *stack);
}

void listen_to_the_dispatcher() {
  static torch::Library library(torch::Library::IMPL, "_", kKey, __FILE__, __LINE__);
  static const bool kListens = [] {
    library.fallback(torch::CppFunction::makeFromBoxedFunction<&on_call>());
    return true;
  }();
  static_cast<void>(kListens);
}

}  // namespace

namespace {

struct Active {
  explicit Active(Recorder* recorder) { active_recorder = recorder; }
  ~Active() { active_recorder = nullptr; }
  Active(const Active&) = delete;
  Active& operator=(const Active&) = delete;
};

}  // namespace

Recording record(const Function& function, const std::vector<at::Tensor>& inputs, Outcome outcome) {
  const std::lock_guard lock(recording_mutex);
  listen_to_the_dispatcher();
  KeptGenerators generators(inputs);
  Recorder recorder(inputs, generators);
  if (recorder.has_refused()) return recorder.refused();
  std::vector<at::Tensor> results;
  try {
    const Active active(&recorder);
    const c10::impl::IncludeDispatchKeyGuard guard(kKey);
    results = function(inputs);
  } catch (...) {
    // Autograd may have wrapped what was thrown.
    if (recorder.has_refused()) return recorder.refused();
    throw;
  }
  return recorder.finish(std::move(results), outcome);
}

Recording record_while_further(const std::function<Recording()>& trial) {
  Recording recording = trial();
  for (int64_t calls = -1; !recording.refusal.empty() && recording.calls > calls;) {
    calls = recording.calls;
    recording = trial();
  }
  return recording;
}

Unrecorded::Unrecorded() : guard_(kKey) {}

bool is_recording() { return c10::impl::tls_is_dispatch_key_included(kKey); }

}  // namespace gallop::compile
