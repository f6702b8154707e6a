#include "gallop/compile/verify.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>

#include "gallop/compile/executor.h"
#include "gallop/tensor/recording.h"

namespace gallop::compile {

namespace {

bool is_narrow(at::ScalarType type) { return type == c10::kBFloat16 || type == c10::kHalf; }

double allowed(at::ScalarType type) { return is_narrow(type) ? 0.5 : 0.01; }

// Whether an fp32 tensor that a change depends on may be computed from narrower ones, or by GEMMs
// in tf32, which has the mantissa of fp16: then their tolerance applies.
bool computes_narrow(const Graph& graph) {
  return at::globalContext().allowTF32CuBLAS() ||
         std::any_of(graph.views.begin(), graph.views.end(),
                     [](const View& view) { return is_narrow(view.dtype); });
}

double allowed_within(bool is_narrow_step, at::ScalarType type) {
  return allowed(is_narrow_step ? c10::kBFloat16 : type);
}

double rms_of(const at::Tensor& tensor) {
  if (tensor.numel() == 0) return 0;
  return at::linalg_vector_norm(tensor.to(c10::kDouble)).item<double>() /
         std::sqrt(static_cast<double>(tensor.numel()));
}

// Root mean square of the difference, relative to that of `wanted` or to `floor`, whichever is
// larger. Values that are not finite must be so in both.
double error_of(const at::Tensor& got, const at::Tensor& wanted, double floor = 0) {
  if (got.sizes() != wanted.sizes() || got.scalar_type() != wanted.scalar_type()) return INFINITY;
  // Bytes are codes of numbers (kernel/state_map.h), in ascending order.
  const bool is_code = wanted.scalar_type() == c10::kByte;
  if (!is_code && !c10::isFloatingType(wanted.scalar_type())) {
    return at::equal(got, wanted) ? 0 : INFINITY;
  }
  const at::Tensor a = got.to(c10::kDouble), b = wanted.to(c10::kDouble);
  const at::Tensor finite = at::isfinite(b);
  if (!at::equal(at::isfinite(a), finite)) return INFINITY;
  const at::Tensor zero = at::zeros_like(b);
  const double difference = rms_of(at::where(finite, a - b, zero));
  return difference == 0 ? 0 : difference / std::max(rms_of(at::where(finite, b, zero)), floor);
}

// The data type of the graph's views of this state.
at::ScalarType type_of(const Graph& graph, const at::Tensor& state) {
  for (const View& view : graph.views) {
    const Buffer& buffer = graph.buffers[view.buffer];
    if (buffer.kind == Buffer::Kind::kState && buffer.state.is_alias_of(state)) return view.dtype;
  }
  return state.scalar_type();
}

const at::Tensor* after_of(const Recording& recording, const at::Tensor& state) {
  for (const Change& change : recording.changes) {
    if (change.state.is_alias_of(state)) return &change.after;
  }
  return nullptr;
}

std::string compare(const Recording& wanted, const Recording& got) {
  for (const Recording* trial : {&wanted, &got}) {
    if (!trial->refusal.empty()) return "it cannot be recorded: " + trial->refusal;
  }
  for (size_t i = 0; i < wanted.results.size(); ++i) {
    if (!wanted.results[i].defined()) continue;
    const double error = error_of(got.results[i], wanted.results[i]);
    if (error > allowed(wanted.results[i].scalar_type())) {
      return fmt::format("result {} differs by {:.2g} of its magnitude", i, error);
    }
  }
  for (const Change& change : wanted.changes) {
    const at::Tensor* after = after_of(got, change.state);
    if (after == nullptr) return "a tensor that should change does not";
    const at::ScalarType type = type_of(wanted.graph, change.state);
    const double error = error_of(after->view(type), change.after.view(type));
    // The precision in which an update was computed is unknown.
    if (error > allowed(c10::kBFloat16)) {
      return fmt::format("a changed tensor of {} bytes differs by {:.2g} of its magnitude",
                         change.after.numel(), error);
    }
  }
  return {};
}

// The contents of a buffer, identified by the recording's buffer and its number of changes so far.
using Moment = std::pair<int64_t, int64_t>;

// Counts the changes of buffers while a graph runs.
class Moments {
 public:
  Moment after_write(const Buffer& buffer) {
    // The first write of a temporary buffer creates it and is no change.
    const int64_t first = buffer.kind == Buffer::Kind::kTemporary ? 0 : 1;
    return {buffer.origin, buffer.version + first + writes_[&buffer]++};
  }
  Moment now(const Buffer& buffer) const {
    const auto writes = writes_.find(&buffer);
    const int64_t count = writes == writes_.end() ? 0 : writes->second;
    const int64_t made = buffer.kind == Buffer::Kind::kTemporary ? 1 : 0;
    return {buffer.origin, buffer.version + count - made};
  }

 private:
  std::map<const Buffer*, int64_t> writes_;
};

// For each node that changes state, the temporaries from which it computes the change.
std::vector<std::vector<Moment>> sources_of_changes(const Graph& graph) {
  std::vector<std::vector<Moment>> all;
  Moments moments;
  for (const Node& node : graph.nodes) {
    const auto accesses = accesses_of(node);
    const bool changes = std::any_of(accesses.begin(), accesses.end(), [&](const Access& access) {
      return access.writes && graph.buffer_of(access.view).kind == Buffer::Kind::kState;
    });
    if (changes) {
      all.emplace_back();
      for (const Access& access : accesses) {
        const Buffer& buffer = graph.buffer_of(access.view);
        if (access.reads && buffer.kind == Buffer::Kind::kTemporary) {
          all.back().push_back(moments.now(buffer));
        }
      }
    }
    for (const Access& access : accesses) {
      if (access.writes) moments.after_write(graph.buffer_of(access.view));
    }
  }
  return all;
}

using Values = std::map<Moment, at::Tensor>;

struct Trial {
  Recording recording;
  Values values;
};

// Runs a graph in a dry run, and saves the contents of its buffers at these moments, or at all
// moments if `kept` is null.
Trial dry_run(const Graph& graph, const std::vector<at::Tensor>& inputs,
              const std::set<Moment>* kept) {
  Executor executor(graph);
  Trial trial;
  executor.observe([&, moments = Moments()](const Node&, const Buffer& buffer,
                                            const at::Tensor& tensor) mutable {
    const Moment moment = moments.after_write(buffer);
    if (buffer.origin == kNone || (kept != nullptr && !kept->contains(moment))) return;
    const Unrecorded aside;
    trial.values[moment] = tensor.clone();
  });
  trial.recording =
      record([&](const std::vector<at::Tensor>& in) { return executor.run(in); }, inputs);
  return trial;
}

std::string compare(bool is_narrow_step, const std::vector<std::vector<Moment>>& sources,
                    const Values& wanted, const Values& got) {
  for (const auto& group : sources) {
    double squares = 0, count = 0;
    for (const Moment& moment : group) {
      const auto value = wanted.find(moment);
      if (value == wanted.end() || !c10::isFloatingType(value->second.scalar_type())) continue;
      const auto size = static_cast<double>(value->second.numel());
      squares += size * std::pow(rms_of(value->second), 2);
      count += size;
    }
    const double floor = count > 0 ? 0.01 * std::sqrt(squares / count) : 0;
    for (const Moment& moment : group) {
      const auto a = got.find(moment), b = wanted.find(moment);
      // A pass may have changed its layout or data type.
      if (a == got.end() || b == wanted.end() || a->second.numel() != b->second.numel() ||
          a->second.scalar_type() != b->second.scalar_type()) {
        continue;
      }
      const double error = error_of(a->second.reshape_as(b->second), b->second, floor);
      if (error > allowed_within(is_narrow_step, b->second.scalar_type())) {
        return fmt::format("a tensor that changes the state differs by {:.2g} of its magnitude",
                           error);
      }
    }
  }
  return {};
}

std::string first_difference(bool is_narrow_step, const Graph& plain, const Graph& graph,
                             const std::vector<at::Tensor>& inputs) {
  const Values wanted = dry_run(plain, inputs, nullptr).values;
  std::string found;
  Executor executor(graph);
  executor.observe([&, moments = Moments()](const Node& node, const Buffer& buffer,
                                            const at::Tensor& tensor) mutable {
    const Unrecorded aside;
    const Moment moment = moments.after_write(buffer);
    const auto same = buffer.origin == kNone ? wanted.end() : wanted.find(moment);
    if (leaves_memory_as_it_is(node.op) || !found.empty() || same == wanted.end() ||
        same->second.sizes() != tensor.sizes()) {
      return;
    }
    const double error = error_of(tensor, same->second);
    if (error > allowed_within(is_narrow_step, tensor.scalar_type())) {
      found = fmt::format("; the first to differ is {}, by {:.2g}", name_of(node.op), error);
    }
  });
  record([&](const std::vector<at::Tensor>& in) { return executor.run(in); }, inputs);
  return found;
}

}  // namespace

std::string find_difference(const Function& function, const Graph& graph,
                            const std::vector<at::Tensor>& inputs) {
  const Recording recording = retrace_until_stable([&] { return record(function, inputs); });
  const auto sources = sources_of_changes(recording.graph);
  const bool is_narrow_step = computes_narrow(recording.graph);
  std::set<Moment> kept;
  for (const auto& group : sources) kept.insert(group.begin(), group.end());
  const Trial wanted = dry_run(recording.graph, inputs, &kept);
  const Trial got = dry_run(graph, inputs, &kept);
  const at::NoGradGuard no_grad;
  std::string found = compare(recording, got.recording);
  if (found.empty()) found = compare(is_narrow_step, sources, wanted.values, got.values);
  if (found.empty()) return found;
  return found + first_difference(is_narrow_step, recording.graph, graph, inputs);
}

}  // namespace gallop::compile
