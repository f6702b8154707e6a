#include "gallop/compile/graph.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string_view>

namespace gallop::compile {

namespace {

// Operators that overwrite their first argument without reading it.
constexpr std::array<std::string_view, 14> kOverwriters = {"aten::copy_",
                                                           "aten::fill_",
                                                           "aten::zero_",
                                                           "aten::bernoulli_",
                                                           "aten::normal_",
                                                           "aten::random_",
                                                           "aten::exponential_",
                                                           "aten::uniform_",
                                                           "aten::set_",
                                                           "aten::eye",
                                                           "aten::geometric_",
                                                           "aten::log_normal_",
                                                           "gallop::all_to_all_async",
                                                           "gallop::recv_async"};

constexpr std::array<std::string_view, 6> kUninitialized = {
    "aten::empty",     "aten::empty_like",        "aten::empty_strided",
    "aten::new_empty", "aten::new_empty_strided", "aten::empty_permuted"};

// Operators that change running statistics, arguments 3 and 4, although their schema omits it.
constexpr std::array<std::string_view, 3> kHiddenWriters = {
    "aten::native_batch_norm", "aten::cudnn_batch_norm", "aten::miopen_batch_norm"};

// The namespace of LibTorch's collectives, and of those of parallel/sums.h.
constexpr std::string_view kCollectives = "_c10d_functional::";
constexpr std::array<std::string_view, 5> kStarts = {
    "gallop::all_reduce_async", "gallop::all_to_all_async", "gallop::all_gather_async",
    "gallop::send_async", "gallop::recv_async"};
constexpr std::array<std::string_view, 2> kWaits = {"_c10d_functional::wait_tensor",
                                                    "gallop::wait_tensor"};

bool waits(const c10::FunctionSchema& schema) {
  return std::find(kWaits.begin(), kWaits.end(), schema.name()) != kWaits.end();
}

bool writes(const c10::FunctionSchema& schema, size_t argument) {
  const auto* alias = schema.arguments()[argument].alias_info();
  if ((alias != nullptr && alias->isWrite()) || waits(schema)) return true;
  return (argument == 3 || argument == 4) && std::find(kHiddenWriters.begin(), kHiddenWriters.end(),
                                                       schema.name()) != kHiddenWriters.end();
}

bool overwrites(const c10::FunctionSchema& schema, size_t argument) {
  if (schema.arguments()[argument].is_out()) return true;
  return argument == 0 &&
         std::find(kOverwriters.begin(), kOverwriters.end(), schema.name()) != kOverwriters.end();
}

}  // namespace

void add_origins(Node& node, const std::vector<int32_t>& origins) {
  std::vector<int32_t> all = std::move(node.origins);
  all.insert(all.end(), origins.begin(), origins.end());
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  node.origins = std::move(all);
}

int64_t View::numel() const {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

bool View::is_dense() const {
  std::vector<size_t> order(sizes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(),
            [&](size_t a, size_t b) { return strides[a] < strides[b]; });
  int64_t expected = 1;
  for (const size_t i : order) {
    if (sizes[i] == 1) continue;
    if (strides[i] != expected) return numel() == 0;
    expected *= sizes[i];
  }
  return true;
}

ViewId Graph::intern(const View& view) {
  const auto found = std::find(views.begin(), views.end(), view);
  if (found != views.end()) return static_cast<ViewId>(found - views.begin());
  views.push_back(view);
  return static_cast<ViewId>(views.size() - 1);
}

std::vector<Access> accesses_of(const Node& node) {
  const c10::FunctionSchema& schema = node.op.schema();
  std::vector<Access> accesses;
  for (size_t i = 0; i < node.arguments.size(); ++i) {
    const bool written = writes(schema, i);
    for (const ViewId view : node.arguments[i].views) {
      if (view == kNone) continue;
      accesses.push_back(
          {.view = view, .reads = !(written && overwrites(schema, i)), .writes = written});
    }
  }
  for (const Operand& result : node.results) {
    for (const ViewId view : result.views) {
      if (view != kNone) accesses.push_back({.view = view, .reads = false, .writes = true});
    }
  }
  return accesses;
}

bool is_random(const c10::OperatorHandle& op) {
  return op.hasTag(at::Tag::nondeterministic_seeded);
}

bool starts_collective(const c10::OperatorHandle& op) {
  const std::string_view name = op.schema().name();
  return (name.starts_with(kCollectives) && !waits_for_collective(op)) ||
         std::find(kStarts.begin(), kStarts.end(), name) != kStarts.end();
}

bool waits_for_collective(const c10::OperatorHandle& op) { return waits(op.schema()); }

bool is_idle_in_dry_run(const c10::OperatorHandle& op) {
  const std::string_view name = op.schema().name();
  return std::find(kStarts.begin(), kStarts.end(), name) != kStarts.end() ||
         name == "gallop::wait_tensor" || name == "gallop::release_pages";
}

bool leaves_memory_as_it_is(const c10::OperatorHandle& op) {
  return std::find(kUninitialized.begin(), kUninitialized.end(), op.schema().name()) !=
         kUninitialized.end();
}

std::string source_of(const Graph& graph, const Node& node) {
  if (!graph.calls || node.origins.empty()) return {};
  const RecordedCall& call = graph.calls->calls[static_cast<size_t>(node.origins.front())];
  if (call.source.empty()) return {};
  return (call.phase == "backward" ? ": backward of " : ": ") + call.source;
}

std::string name_of(const c10::OperatorHandle& op) { return toString(op.operator_name()); }

}  // namespace gallop::compile
