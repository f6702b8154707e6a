#include "gallop/compile/graph_stages.h"

#include <algorithm>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/compile/bf16_weight_cache.h"
#include "gallop/compile/difference.h"
#include "gallop/compile/passes.h"
#include "gallop/compile/recorder.h"

namespace gallop::compile {

namespace {

constexpr const char* kRecorded = "recorded";

constexpr const char* kLast = "last";

// Records the function twice; both recordings must be equal.
Recording record_for_good(const Function& function, const std::vector<at::Tensor>& arguments) {
  const auto trial = [&] { return record(function, arguments, Outcome::kNotWanted); };
  Recording first = retrace_until_stable(trial);
  if (!first.refusal.empty()) return first;
  const Recording second = trial();
  first.refusal = second.refusal;
  if (!first.refusal.empty()) return first;
  const std::string found = difference(first.graph, second.graph);
  if (!found.empty()) first.refusal = "two recordings differ: " + found;
  return first;
}

}  // namespace

std::vector<StageInfo> all_stages() {
  std::vector<StageInfo> stages{{kRecorded, "as recorded, before the first pass"}};
  for (const Pass& pass : all_passes()) stages.push_back({pass.name, pass.help});
  return stages;
}

void check_stage(const std::string& name) {
  if (name.empty() || name == kLast) return;
  std::vector<std::string> known;
  for (const StageInfo& stage : all_stages()) known.push_back(stage.name);
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  throw UsageError(
      fmt::format("there is no compiler pass '{}'; there are {}", name, join_names(known, "and")));
}

GraphStages graph_stages(const Function& function, const std::vector<at::Tensor>& arguments,
                         const GraphNames& names, const StagesConfig& config) {
  check_stage(config.only);
  GraphStages found;
  Recording recording = record_for_good(function, arguments);
  found.refusal = recording.refusal;
  if (!found.refusal.empty()) return found;

  std::vector<Graph> graphs;
  const auto keep = [&](const std::string& name) {
    if (config.only == kLast) {
      found.stages.clear();
      graphs.clear();
    } else if (!config.only.empty() && config.only != name) {
      return;
    }
    found.stages.push_back({.name = name, .listing = {}});
    graphs.push_back(recording.graph);
  };
  keep(kRecorded);
  KernelCompiler compiler;
  std::vector<at::Tensor> state;
  for (const auto& [name, tensor] : names.state) state.push_back(tensor);
  Bf16WeightCache weight_cache(std::move(state));
  PassContext context{.compiler = compiler, .weight_cache = &weight_cache};
  run_passes(recording.graph, config.passes_off, context,
             [&](const Pass& pass) { keep(pass.name); });
  found.fallbacks = std::move(context.fallbacks);
  if (graphs.empty()) throw UsageError(fmt::format("the pass '{}' is off", config.only));

  std::vector<const Graph*> timed;
  for (const Graph& graph : graphs) timed.push_back(&graph);
  const auto times = time_graphs(timed, arguments, config.timing);
  for (size_t i = 0; i < graphs.size(); ++i) {
    found.stages[i].listing = list_graph(graphs[i], names, times[i]);
  }
  return found;
}

}  // namespace gallop::compile
