#include "gallop/compile/compiled_function.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>

#include "gallop/base/error.h"
#include "gallop/base/trace.h"
#include "gallop/compile/bf16_weight_cache.h"
#include "gallop/compile/difference.h"
#include "gallop/compile/passes.h"
#include "gallop/compile/recorder.h"
#include "gallop/compile/replayer.h"
#include "gallop/compile/verify.h"
#include "gallop/tensor/recording.h"

namespace gallop::compile {

namespace {

// The properties of the arguments on which a graph depends.
struct Signature {
  int64_t mode = 0;
  std::vector<int64_t> numbers;

  bool operator<(const Signature& other) const {
    return std::tie(mode, numbers) < std::tie(other.mode, other.numbers);
  }
};

Signature signature_of(const std::vector<at::Tensor>& inputs, int64_t mode) {
  Signature signature{.mode = mode, .numbers = {c10::GradMode::is_enabled()}};
  auto& numbers = signature.numbers;
  for (const auto device : {c10::kCPU, c10::kCUDA}) {
    const bool casts = at::autocast::is_autocast_enabled(device);
    numbers.push_back(casts ? static_cast<int64_t>(at::autocast::get_autocast_dtype(device))
                            : kNone);
  }
  for (const at::Tensor& input : inputs) {
    if (!input.defined()) {
      numbers.push_back(kNone);
      continue;
    }
    numbers.push_back(input.dim());
    numbers.insert(numbers.end(), input.sizes().begin(), input.sizes().end());
    numbers.push_back(static_cast<int64_t>(input.layout()));
    if (input.layout() == c10::kStrided) {
      numbers.insert(numbers.end(), input.strides().begin(), input.strides().end());
    }
    numbers.push_back(input.requires_grad() ? 1 : 0);
    numbers.push_back((input.is_conj() ? 1 : 0) +
                      (input.is_neg() ? 2 : 0));  // Flags of the memory.
    numbers.push_back(static_cast<int64_t>(input.scalar_type()));
    numbers.push_back(static_cast<int64_t>(input.device().type()) * 256 + input.device().index());
  }
  return signature;
}

void add_once(std::vector<std::string>& list, const std::string& line) {
  if (std::find(list.begin(), list.end(), line) == list.end()) list.push_back(line);
}

// The compilation state of a signature.
struct Entry {
  std::optional<Graph> first;  // The first recording, until the second one agrees.
  std::unique_ptr<Replayer> replayer;
  std::vector<const void*> state;  // The memory of all state that the graph uses.
  bool runs_eagerly = false;
  bool leaves_cache_stale = false;  // Whether it changes parameters without their bf16 copies.
};

const void* memory_of(const at::Tensor& tensor) {
  return tensor.has_storage() ? tensor.storage().unsafeGetStorageImpl() : nullptr;
}

std::vector<const void*> memory_of_state(const Graph& graph) {
  std::vector<const void*> memory;
  for (const Buffer& buffer : graph.buffers) {
    if (buffer.kind == Buffer::Kind::kState) memory.push_back(memory_of(buffer.state));
  }
  return memory;
}

// Whether any argument lies in this memory.
bool is_any_in(const std::vector<at::Tensor>& inputs, const std::vector<const void*>& memory) {
  return std::any_of(inputs.begin(), inputs.end(), [&](const at::Tensor& input) {
    return input.defined() && input.has_storage() &&
           std::find(memory.begin(), memory.end(), memory_of(input)) != memory.end();
  });
}

bool share_memory(const std::vector<at::Tensor>& inputs) {
  std::vector<const void*> memory;
  for (const at::Tensor& input : inputs) {
    if (!input.defined() || !input.has_storage()) continue;
    if (std::find(memory.begin(), memory.end(), memory_of(input)) != memory.end()) return true;
    memory.push_back(memory_of(input));
  }
  return false;
}

}  // namespace

struct CompiledFunction::Impl {
  FunctionOfMode function;
  std::vector<at::Tensor> state;
  Bf16WeightCache weight_cache;
  CompileConfig config;
  CompileReport report;
  KernelCompiler compiler;
  std::map<Signature, Entry> entries;
  std::shared_ptr<Arena> arena;       // Shared by all graphs.
  std::vector<const void*> memory;    // Memory of the state when the entries were recorded.
  std::vector<bool> has_gradient;     // Whether the state required a gradient then.
  int64_t built = 0;                  // Graphs, including forgotten ones.
  const Executor* running = nullptr;  // The executor of the last call, unless it has finished.

  Impl(FunctionOfMode what, std::vector<at::Tensor> works_on, const CompileConfig& how)
      : function(std::move(what)), state(std::move(works_on)), weight_cache(state), config(how) {}

  void forget_if_state_changed() {
    std::vector<const void*> now;
    std::vector<bool> gradient_now;
    now.reserve(state.size());
    for (const at::Tensor& tensor : state) {
      now.push_back(memory_of(tensor));
      gradient_now.push_back(tensor.requires_grad());
    }
    if (now == memory && gradient_now == has_gradient) return;
    entries.clear();
    weight_cache = Bf16WeightCache(state);
    report.graphs = 0;
    memory = std::move(now);
    has_gradient = std::move(gradient_now);
  }

  std::vector<at::Tensor> run_eagerly(const std::vector<at::Tensor>& inputs, int64_t mode) {
    report.eager += 1;
    weight_cache.invalidate();
    return function(inputs, mode);
  }

  void refuse(Entry& entry, const std::string& reason) {
    entry = {.first = {}, .replayer = nullptr, .state = {}, .runs_eagerly = true};
    add_once(report.reasons, reason);
  }

  Recording try_call(const std::vector<at::Tensor>& inputs, int64_t mode) {
    if (!arena) arena = Arena::reserve();
    const Arena::Apart apart(arena.get());
    report.recorded += 1;
    weight_cache.refresh();
    Recording recording =
        record([&](const std::vector<at::Tensor>& arguments) { return function(arguments, mode); },
               inputs, Outcome::kNotWanted);
    weight_cache.ignore_trial_writes();
    return recording;
  }

  void record_first(Entry& entry, const std::vector<at::Tensor>& inputs, int64_t mode) {
    const TraceSpan span(SpanKind::kCompilation, "record and compile");
    Recording recording = retrace_until_stable([&] { return try_call(inputs, mode); });
    if (!recording.refusal.empty()) return refuse(entry, recording.refusal);
    entry.first = recording.graph;
    build(entry, std::move(recording.graph));
  }

  // Checks that the second call of the function records the same graph.
  void record_second(Entry& entry, const std::vector<at::Tensor>& inputs, int64_t mode) {
    const TraceSpan span(SpanKind::kCompilation, "record again");
    Recording recording = try_call(inputs, mode);
    std::string reason = recording.refusal;
    if (reason.empty()) {
      const std::string found = difference(*entry.first, recording.graph);
      if (!found.empty()) reason = "two recordings of the function differ: " + found;
    }
    if (!reason.empty()) {
      report.graphs -= 1;
      return refuse(entry, reason);
    }
    entry.first.reset();
  }

  void build(Entry& entry, Graph graph) {
    entry.state = memory_of_state(graph);
    PassContext context{.compiler = compiler, .weight_cache = &weight_cache};
    run_passes(graph, config.passes_off, context);
    graph.number = built++;
    for (const std::string& line : context.fallbacks) add_once(report.fallbacks, line);
    entry.replayer = std::make_unique<Replayer>(std::make_unique<Executor>(std::move(graph), arena),
                                                config.make_device_graph);
    report.graphs += 1;
    for (auto& [signature, other] : entries) {
      if (!other.replayer) continue;
      other.leaves_cache_stale = weight_cache.are_stale_after(other.replayer->executor().graph());
    }
  }

  void verify(const Entry& entry, const std::vector<at::Tensor>& inputs, int64_t mode) {
    const Arena::Apart apart(arena.get());
    std::string found = find_difference(
        [&](const std::vector<at::Tensor>& arguments) { return function(arguments, mode); },
        entry.replayer->executor().graph(), inputs);
    weight_cache.ignore_trial_writes();
    if (found.empty() && !weight_cache.is_consistent()) {
      found =
          "the bf16 copy of a parameter is not the parameter's, which was changed by other means "
          "than operators";
    }
    if (!found.empty()) {
      throw InternalError("the compiled step differs from the eager step: " + found);
    }
    report.verified += 1;
  }

  // A graph assumes that its tensors do not alias, except for views of state.
  std::vector<at::Tensor> run_shared(const std::vector<at::Tensor>& inputs, int64_t mode) {
    add_once(report.reasons, "arguments share memory with each other or with the state");
    return run_eagerly(inputs, mode);
  }

  // Nothing if the first replay showed that the recorded graph is not that of the function: it has
  // changed nothing then, and the function runs eagerly from now on.
  std::optional<std::vector<at::Tensor>> replay(Entry& entry,
                                                const std::vector<at::Tensor>& inputs) {
    const bool is_first = !entry.replayer->executor().has_finished();
    running = &entry.replayer->executor();
    try {
      auto results = entry.replayer->run(inputs);
      running = nullptr;
      return results;
    } catch (const LayoutMismatch& mismatch) {
      if (!is_first) throw;
      running = nullptr;
      report.graphs -= 1;
      refuse(entry, mismatch.what());
      return std::nullopt;
    }
  }

  std::vector<at::Tensor> call(const std::vector<at::Tensor>& inputs, int64_t mode) {
    // The call is part of an outer recording.
    if (is_recording()) return function(inputs, mode);
    running = nullptr;
    forget_if_state_changed();
    if (share_memory(inputs) || is_any_in(inputs, memory)) return run_shared(inputs, mode);
    const Signature signature = signature_of(inputs, mode);
    auto found = entries.find(signature);
    if (found == entries.end()) {
      if (static_cast<int64_t>(entries.size()) >= config.graphs) return run_eagerly(inputs, mode);
      found = entries.emplace(signature, Entry()).first;
    }
    Entry& entry = found->second;
    if (!entry.runs_eagerly && !entry.replayer) {
      record_first(entry, inputs, mode);
    } else if (entry.first) {
      record_second(entry, inputs, mode);
    }
    if (entry.runs_eagerly) return run_eagerly(inputs, mode);
    if (is_any_in(inputs, entry.state)) return run_shared(inputs, mode);
    weight_cache.refresh();
    if (config.verify_every > 0 && report.replayed % config.verify_every == 0) {
      verify(entry, inputs, mode);
    }
    std::optional<std::vector<at::Tensor>> results = replay(entry, inputs);
    if (!results) return run_eagerly(inputs, mode);
    report.replayed += 1;
    if (entry.leaves_cache_stale) weight_cache.invalidate();
    report.captured += entry.replayer->is_captured() ? 1 : 0;
    if (!entry.replayer->fallback_reason().empty())
      add_once(report.fallbacks, entry.replayer->fallback_reason());
    return *std::move(results);
  }
};

CompiledFunction::CompiledFunction(FunctionOfMode function, std::vector<at::Tensor> state,
                                   const CompileConfig& config)
    : impl_(std::make_unique<Impl>(std::move(function), std::move(state), config)) {}

CompiledFunction::~CompiledFunction() = default;

std::vector<at::Tensor> CompiledFunction::operator()(const std::vector<at::Tensor>& inputs,
                                                     int64_t mode) {
  return impl_->call(inputs, mode);
}

bool CompiledFunction::has_changed(const std::vector<at::Tensor>& state) const {
  return impl_->running != nullptr &&
         std::any_of(state.begin(), state.end(), [this](const at::Tensor& tensor) {
           return impl_->running->has_changed(tensor);
         });
}

void CompiledFunction::forget() {
  impl_->running = nullptr;
  impl_->memory.clear();  // So that the next call detects a change.
  impl_->entries.clear();
  impl_->arena.reset();
}

const CompileReport& CompiledFunction::report() const { return impl_->report; }

std::vector<const Graph*> CompiledFunction::graphs() const {
  std::vector<const Graph*> all;
  for (const auto& [signature, entry] : impl_->entries) {
    if (entry.replayer) all.push_back(&entry.replayer->executor().graph());
  }
  return all;
}

}  // namespace gallop::compile
