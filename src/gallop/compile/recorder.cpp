#include "gallop/compile/recorder.h"

#include <algorithm>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <utility>

#include <ATen/Context.h>
#include <ATen/SequenceNumber.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/Generator.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/stack.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/function.h>
#include <torch/library.h>

#include "gallop/base/source_context.h"
#include "gallop/base/trace.h"
#include "gallop/compile/compiled_function.h"
#include "gallop/compile/deferred_calls.h"
#include "gallop/compile/graph_builder.h"
#include "gallop/compile/kept_generators.h"
#include "gallop/compile/recordable.h"
#include "gallop/compile/tensor_in.h"
#include "gallop/tensor/recording.h"

namespace gallop::compile {

namespace {

using torch::jit::Stack;

constexpr auto kKey = kRecordingKey;

// Aborts the call of a function that cannot be recorded, before it has an effect.
struct Refused : std::exception {
  const char* what() const noexcept override { return "the function cannot be recorded"; }
};

std::string name_of_innermost(SpanKind kind) {
  const TraceSpan* span = TraceSpan::innermost(kind);
  return span == nullptr ? std::string() : std::string(span->name());
}

// Where the call that is being recorded is made.
RecordedCall this_call() {
  RecordedCall call{.phase = name_of_innermost(SpanKind::kPhase),
                    .layer = name_of_innermost(SpanKind::kLayer)};
  const auto made = static_cast<int64_t>(at::sequence_number::peek()) - 1;
  if (const auto node = torch::autograd::get_current_node()) {
    // With gradients enabled: activation checkpointing runs a part of the forward pass again.
    const bool again = c10::GradMode::is_enabled();
    call.phase = again ? "recomputation" : "backward";
    call.backward = static_cast<int64_t>(node->sequence_nr());
    if (again) call.made = made;
  } else {
    call.made = made;
  }
  call.source = SourceContext::current();
  return call;
}

/// Restores random generators when destroyed: the default ones, and others kept before their use.
class RestoredGenerators {
 public:
  explicit RestoredGenerators(const std::vector<at::Tensor>& inputs) {
    kept.keep_default(c10::kCPU);
    for (const at::Tensor& input : inputs) {
      if (input.defined()) kept.keep_default(input.device());
    }
  }
  ~RestoredGenerators() { kept.restore(); }
  RestoredGenerators(const RestoredGenerators&) = delete;
  RestoredGenerators& operator=(const RestoredGenerators&) = delete;

  KeptGenerators kept;
};

class Recorder {
 public:
  Recorder(const std::vector<at::Tensor>& inputs, KeptGenerators& generators)
      : inputs_(inputs), generators_(generators) {
    for (const at::Tensor& input : inputs) {
      builder_.add_input(input);
      if (has_refused()) return;
    }
  }

  // Executes the call without an effect on state, and records it.
  void call(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack& stack) {
    const c10::impl::ExcludeDispatchKeyGuard not_again(kKey);
    calls_ += 1;
    RecordedCall made_here = this_call();
    const auto forward = sources_.find(made_here.backward);
    std::optional<SourceContext> of_forward;
    if (made_here.source.empty() && forward != sources_.end()) {
      made_here.source = forward->second;
      of_forward.emplace(&forward->second, [](const void* source) {
        return "backward of " + *static_cast<const std::string*>(source);
      });
    } else if (made_here.made != kNone && !made_here.source.empty()) {
      sources_.emplace(made_here.made, made_here.source);
    }
    std::optional<Node> node;
    if (changes_only_sizes(op)) {
      check_may_change_sizes(op, stack);
      give_up_if_refused();
    } else if (op.schema().name().rfind("profiler::", 0) != 0) {
      node = node_of(op, stack);
      if (put_off(*node, keys, stack, made_here)) return;
      use_copies(*node, stack);
    }
    const size_t known = builder_.graph().buffers.size();
    op.redispatchBoxed(keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kKey), &stack);
    if (node) builder_.add(std::move(*node), stack, known, std::move(made_here));
    give_up_if_refused();
  }

  Recording finish(std::vector<at::Tensor> results, Outcome outcome) {
    for (const at::Tensor& result : results) builder_.add_output(result);
    if (has_refused()) return refused();
    if (outcome == Outcome::kWanted) {
      flush_deferred_calls();
      for (at::Tensor& result : results) result = current(result);
    } else {
      results.clear();
      copies_.clear();
    }
    Recording recording{.graph = builder_.take(),
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

  bool has_refused() const { return !builder_.refusal().empty(); }
  Recording refused() {
    return {
        .graph = {}, .refusal = builder_.refusal(), .results = {}, .changes = {}, .calls = calls_};
  }

 private:
  void give_up_if_refused() const {
    if (has_refused()) throw Refused();
  }

  Node node_of(const c10::OperatorHandle& op, const Stack& stack) {
    if (const std::string reason = why_not_recorded(op, stack); !reason.empty()) {
      builder_.refuse(name_of(op) + " " + reason);
      throw Refused();
    }
    for (size_t i = stack.size() - op.schema().arguments().size(); i < stack.size(); ++i) {
      if (stack[i].isGenerator()) generators_.keep(stack[i].toGenerator());
    }
    Node node = builder_.node_of(op, stack);
    give_up_if_refused();
    return node;
  }

  // Records the call as deferred if the tensors that it reads take less memory than copies of the
  // state that it changes. Returns whether it did; if not, runs the calls that must precede it.
  bool put_off(const Node& node, c10::DispatchKeySet keys, Stack& stack, const RecordedCall& call) {
    if (is_idle_in_dry_run(node.op)) return false;
    auto touches = touches_of_call(builder_.graph(), node);
    const bool comes_after = deferred_calls_.must_precede(touches);
    int64_t copied = 0, kept = 0;
    for (const Touch& touch : touches) {
      const Buffer& buffer = builder_.graph().buffers[touch.buffer];
      if (buffer.kind == Buffer::Kind::kTemporary) {
        kept += touch.reads ? buffer.bytes : 0;
      } else if (touch.writes && !copies_.contains(touch.buffer)) {
        copied += buffer.bytes;
      }
    }
    std::optional<Stack> results;
    if (copied > 0 && copied >= kept)
      results = DeferredCalls::results_of(builder_.graph(), node, stack);
    if (!results) {
      if (comes_after) flush_deferred_calls();
      return false;
    }
    const size_t known = builder_.graph().buffers.size();
    builder_.add(node, *results, known, call);
    give_up_if_refused();
    for (size_t made = known; made < builder_.graph().buffers.size(); ++made) {
      touches.push_back({.buffer = static_cast<BufferId>(made), .reads = false, .writes = true});
    }
    const size_t count = node.op.schema().arguments().size();
    const auto first = stack.end() - static_cast<std::ptrdiff_t>(count);
    deferred_calls_.add({.node = node,
                         .keys = keys,
                         .arguments = {first, stack.end()},
                         .results = *results,
                         .touches = std::move(touches)});
    stack.erase(first, stack.end());
    stack.insert(stack.end(), results->begin(), results->end());
    return true;
  }

  void flush_deferred_calls() {
    const at::NoGradGuard no_grad;
    const at::AutoDispatchBelowADInplaceOrView below_autograd;
    const c10::impl::ExcludeDispatchKeyGuard below_autocast(c10::autocast_dispatch_keyset);
    const c10::impl::ExcludeDispatchKeyGuard not_again(kKey);
    for (DeferredCalls::Call& call : deferred_calls_.take()) {
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

  // Replaces state that is written by a copy for the rest of this recording.
  void use_copies(const Node& node, Stack& stack) {
    if (is_idle_in_dry_run(node.op)) return;
    for (const Access& access : accesses_of(node)) {
      const BufferId id = builder_.graph().views[access.view].buffer;
      const Buffer& buffer = builder_.graph().buffers[id];
      if (!access.writes || buffer.kind == Buffer::Kind::kTemporary || copies_.contains(id)) {
        continue;
      }
      const at::Tensor& base =
          buffer.kind == Buffer::Kind::kState ? buffer.state : inputs_[buffer.input];
      const at::Tensor copy =
          tensor_in(base, c10::kByte, {buffer.bytes}, {1}, /*offset=*/0).clone();
      builder_.name(copy, id);
      copies_.emplace(id, copy);
    }
    if (copies_.empty()) return;
    const auto& arguments = node.op.schema().arguments();
    for (size_t i = 0; i < arguments.size(); ++i) {
      const auto* alias = arguments[i].alias_info();
      if (alias != nullptr && !alias->isWrite()) continue;  // Only a view is returned.
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

  // The tensor with the contents that it has within the recorded call.
  at::Tensor current(const at::Tensor& tensor) const {
    if (!tensor.defined() || tensor.unsafeGetTensorImpl()->is_wrapped_number()) return tensor;
    const auto copy = copies_.find(builder_.known_buffer_of(tensor));
    if (copy == copies_.end() || copy->second.is_alias_of(tensor)) return tensor;
    return tensor_in(copy->second, tensor.scalar_type(), tensor.sizes(), tensor.strides(),
                     tensor.storage_offset(), tensor.is_conj());
  }

  // Refuses changes of the sizes of the caller's tensors, which would persist.
  void check_may_change_sizes(const c10::OperatorHandle& op, const Stack& stack) {
    const at::Tensor& tensor = stack[stack.size() - op.schema().arguments().size()].toTensor();
    const BufferId known = builder_.known_buffer_of(tensor);
    const bool is_own =
        known != kNone && builder_.graph().buffers[known].kind == Buffer::Kind::kTemporary;
    if (!is_own && op.schema().name() != "aten::detach_") {
      builder_.refuse(name_of(op) + " changes the sizes of a tensor that was there before");
    }
  }

  const std::vector<at::Tensor>& inputs_;
  KeptGenerators& generators_;
  GraphBuilder builder_;
  int64_t calls_ = 0;
  std::map<BufferId, at::Tensor> copies_;  // Copies of state and changed inputs, as bytes.
  DeferredCalls deferred_calls_;
  // The source lines of calls in forward, by autograd's sequence number; stable addresses.
  std::map<int64_t, std::string> sources_;
};

// Global, not thread_local: backward passes on a GPU run in threads of the autograd engine, which
// inherit only the dispatcher's keys.
std::mutex recording_mutex;
Recorder* active_recorder = nullptr;

void on_call(const c10::OperatorHandle& op, c10::DispatchKeySet keys, Stack* stack) {
  // A composite operator is recorded as the operators that it calls.
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
  RestoredGenerators generators(inputs);
  Recorder recorder(inputs, generators.kept);
  if (recorder.has_refused()) return recorder.refused();
  std::vector<at::Tensor> results;
  try {
    const Active active(&recorder);
    const c10::impl::IncludeDispatchKeyGuard guard(kKey);
    results = function(inputs);
  } catch (...) {
    // Autograd may have wrapped the exception.
    if (recorder.has_refused()) return recorder.refused();
    throw;
  }
  return recorder.finish(std::move(results), outcome);
}

Recording retrace_until_stable(const std::function<Recording()>& trial) {
  Recording recording = trial();
  for (int64_t calls = -1; !recording.refusal.empty() && recording.calls > calls;) {
    calls = recording.calls;
    recording = trial();
  }
  return recording;
}

}  // namespace gallop::compile
