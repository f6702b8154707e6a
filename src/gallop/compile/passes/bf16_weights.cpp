#include <algorithm>
#include <optional>
#include <string_view>

#include "gallop/compile/analysis.h"
#include "gallop/compile/bf16_weight_cache.h"
#include "gallop/compile/passes/matcher.h"
#include "gallop/compile/passes/passes.h"

namespace gallop::compile::passes {

namespace {

// The update. Its last two arguments are bf16 copies of parameters for it to write, and the indices
// of these parameters.
constexpr std::string_view kUpdate = "gallop::update_";
constexpr size_t kParameters = 1;

// The argument of a cast to bf16 that does nothing else; else kNone.
ViewId rounded_by(const Graph& graph, const Node& node) {
  if (name_of(node.op) != "aten::_to_copy" || node.arguments[0].kind != Operand::Kind::kTensor) {
    return kNone;
  }
  const ViewId from = node.arguments[0].views[0], to = node.results[0].views[0];
  if (from == kNone || to == kNone) return kNone;
  const View &wide = graph.views[from], &narrow = graph.views[to];
  const bool rounds = wide.dtype == c10::kFloat && narrow.dtype == c10::kBFloat16 &&
                      is_whole(graph, from) && is_whole(graph, to) &&
                      is_laid_out_alike(wide, narrow) &&
                      graph.buffer_of(from).device == graph.buffer_of(to).device;
  return rounds ? from : kNone;
}

class Bf16Weights {
 public:
  Bf16Weights(Graph& graph, Bf16WeightCache& weight_cache)
      : graph_(graph),
        weight_cache_(weight_cache),
        uses_(uses_of(graph)),
        removed_(graph.nodes.size()) {}

  void run() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      if (name_of(graph_.nodes[i].op) == kUpdate) take(static_cast<int64_t>(i));
    }
    remove_nodes(graph_, removed_);
    compact(graph_);
  }

 private:
  // Lets the update write the bf16 copies of its parameters.
  void take(int64_t update) {
    const std::vector<ViewId> parameters = graph_.nodes[update].arguments[kParameters].views;
    for (size_t i = 0; i < parameters.size(); ++i) {
      const BufferId buffer = graph_.views[parameters[i]].buffer;
      if (!is_whole(graph_, parameters[i]) || uses_[buffer].writers.size() != 1) continue;
      std::optional<BufferId> copy;
      for (const int64_t reader : uses_[buffer].readers) {
        if (!is_replaceable(reader, update, buffer)) continue;
        if (!copy) copy = copy_of(update, static_cast<int64_t>(i), parameters[i]);
        if (!copy) break;
        replace(reader, *copy);
      }
    }
  }

  // Whether the node rounds the whole parameter, and its result is last used before the update.
  bool is_replaceable(int64_t node, int64_t update, BufferId parameter) const {
    const ViewId from = rounded_by(graph_, graph_.nodes[node]);
    if (from == kNone || graph_.views[from].buffer != parameter || node > update) return false;
    const BufferId made = graph_.views[graph_.nodes[node].results[0].views[0]].buffer;
    const auto& readers = uses_[made].readers;
    return is_value(graph_, uses_, made) && !uses_[made].is_output &&
           std::all_of(readers.begin(), readers.end(), [&](int64_t r) { return r < update; });
  }

  std::optional<BufferId> copy_of(int64_t update, int64_t number, ViewId parameter) {
    const at::Tensor state = graph_.buffer_of(parameter).state;
    const at::Tensor copy = weight_cache_.of(state);
    if (!copy.defined()) return std::nullopt;
    const auto id = static_cast<BufferId>(graph_.buffers.size());
    graph_.buffers.push_back({.kind = Buffer::Kind::kState,
                              .state = copy,
                              .bytes = static_cast<int64_t>(copy.nbytes()),
                              .device = copy.device(),
                              .copy_of = state});
    View view = graph_.views[parameter];
    view.buffer = id;
    view.dtype = c10::kBFloat16;
    Node& node = graph_.nodes[update];
    node.arguments[node.arguments.size() - 2].views.push_back(graph_.intern(view));
    auto numbers = node.arguments.back().constant.toIntVector();
    numbers.push_back(number);
    node.arguments.back().constant = c10::IValue(numbers);
    return id;
  }

  void replace(int64_t node, BufferId copy) {
    const BufferId made = graph_.views[graph_.nodes[node].results[0].views[0]].buffer;
    for (View& view : graph_.views) {
      if (view.buffer == made) view.buffer = copy;
    }
    removed_[node] = true;
  }

  Graph& graph_;
  Bf16WeightCache& weight_cache_;
  std::vector<Uses> uses_;
  std::vector<bool> removed_;
};

}  // namespace

void bf16_weights(Graph& graph, PassContext& context) {
  if (context.weight_cache != nullptr) Bf16Weights(graph, *context.weight_cache).run();
}

}  // namespace gallop::compile::passes
