#include "gallop/compile/compiled_function.h"

#include <algorithm>
#include <map>
#include <optional>

#include "gallop/compile/executor.h"
#include "gallop/compile/passes.h"
#include "gallop/compile/recorder.h"

namespace gallop::compile {

namespace {

// The first call may differ from the others, as where something is made when first needed; then two
// more must be alike.
constexpr int kRecordings = 3;

// Everything about the arguments that a graph rests on.
struct Signature {
  int64_t mode = 0;
  std::vector<int64_t> numbers;

  auto operator<=>(const Signature&) const = default;
};

Signature signature_of(const std::vector<at::Tensor>& inputs, int64_t mode) {
  Signature signature{.mode = mode, .numbers = {}};
  auto& numbers = signature.numbers;
  for (const at::Tensor& input : inputs) {
    numbers.push_back(input.dim());
    numbers.insert(numbers.end(), input.sizes().begin(), input.sizes().end());
    numbers.insert(numbers.end(), input.strides().begin(), input.strides().end());
    numbers.push_back(static_cast<int64_t>(input.scalar_type()));
    numbers.push_back(static_cast<int64_t>(input.device().type()) * 256 + input.device().index());
  }
  return signature;
}

// What a signature has come to.
struct Entry {
  int recordings = 0;
  std::optional<Graph> last;
  std::unique_ptr<Executor> executor;
  bool runs_eagerly = false;
};

}  // namespace

struct CompiledFunction::Impl {
  FunctionOfMode function;
  std::vector<at::Tensor> state;
  CompileConfig config;
  CompileReport report;
  std::map<Signature, Entry> entries;
  std::shared_ptr<Arena> arena;     // Of all graphs.
  std::vector<const void*> memory;  // Of the state, when the entries were recorded.

  void forget_if_state_moved() {
    std::vector<const void*> now;
    now.reserve(state.size());
    for (const at::Tensor& tensor : state) {
      now.push_back(tensor.storage().unsafeGetStorageImpl());
    }
    if (now == memory) return;
    entries.clear();
    report.graphs = 0;
    memory = std::move(now);
  }

  std::vector<at::Tensor> run_eagerly(const std::vector<at::Tensor>& inputs, int64_t mode) {
    report.eager += 1;
    return function(inputs, mode);
  }

  void refuse(Entry& entry, const std::string& reason) {
    entry.runs_eagerly = true;
    entry.last.reset();
    auto& reasons = report.reasons;
    if (std::find(reasons.begin(), reasons.end(), reason) == reasons.end()) {
      reasons.push_back(reason);
    }
  }

  std::vector<at::Tensor> run_recorded(Entry& entry, const std::vector<at::Tensor>& inputs,
                                       int64_t mode) {
    if (!arena) arena = Arena::reserve();
    const Arena::Apart apart(arena.get());
    Recording recording =
        record([&](const std::vector<at::Tensor>& arguments) { return function(arguments, mode); },
               inputs);
    report.recorded += 1;
    entry.recordings += 1;
    std::string reason = recording.refusal;
    if (reason.empty() && entry.last) {
      if (const std::string found = difference(*entry.last, recording.graph); !found.empty()) {
        reason = "the function does something else at each call: " + found;
      }
    }
    if (!reason.empty() && entry.recordings == kRecordings) {
      refuse(entry, reason);
    } else if (!recording.refusal.empty()) {
      entry.last.reset();
    } else if (entry.last && reason.empty()) {
      entry.last.reset();
      run_passes(recording.graph, config.passes_off);
      entry.executor = std::make_unique<Executor>(std::move(recording.graph), arena);
      report.graphs += 1;
    } else {
      entry.last = std::move(recording.graph);
    }
    return std::move(recording.results);
  }

  std::vector<at::Tensor> call(const std::vector<at::Tensor>& inputs, int64_t mode) {
    forget_if_state_moved();
    const Signature signature = signature_of(inputs, mode);
    auto found = entries.find(signature);
    if (found == entries.end()) {
      if (static_cast<int64_t>(entries.size()) >= config.graphs) return run_eagerly(inputs, mode);
      found = entries.emplace(signature, Entry()).first;
    }
    Entry& entry = found->second;
    if (entry.executor) {
      report.replayed += 1;
      return entry.executor->run(inputs);
    }
    return entry.runs_eagerly ? run_eagerly(inputs, mode) : run_recorded(entry, inputs, mode);
  }
};

CompiledFunction::CompiledFunction(FunctionOfMode function, std::vector<at::Tensor> state,
                                   const CompileConfig& config)
    : impl_(std::make_unique<Impl>()) {
  impl_->function = std::move(function);
  impl_->state = std::move(state);
  impl_->config = config;
}

CompiledFunction::~CompiledFunction() = default;

std::vector<at::Tensor> CompiledFunction::operator()(const std::vector<at::Tensor>& inputs,
                                                     int64_t mode) {
  return impl_->call(inputs, mode);
}

const CompileReport& CompiledFunction::report() const { return impl_->report; }

std::vector<const Graph*> CompiledFunction::graphs() const {
  std::vector<const Graph*> all;
  for (const auto& [signature, entry] : impl_->entries) {
    if (entry.executor) all.push_back(&entry.executor->graph());
  }
  return all;
}

}  // namespace gallop::compile
