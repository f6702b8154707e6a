#pragma once

#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/compile/graph_listing.h"
#include "gallop/compile/graph_names.h"
#include "gallop/compile/graph_times.h"

namespace gallop::compile {

/// A stage of a graph in the pass pipeline.
struct StageInfo {
  std::string name;  ///< "recorded", or a pass's.
  std::string help;
};

/// "recorded", then every pass in the order in which they run.
std::vector<StageInfo> all_stages();

/// Throws UsageError unless `name` is a stage's, "last", or empty.
void check_stage(const std::string& name);

struct StagesConfig {
  std::string only{};  ///< Name of the only requested stage, or "last"; empty: all.
  std::vector<std::string> passes_off{};  ///< As in CompileConfig.
  TimingConfig timing{};
};

/// The result of compiling a function.
struct GraphStages {
  std::string refusal;  ///< Why it cannot be recorded, if so; then there are no stages.
  std::vector<GraphStage> stages;
  std::vector<std::string> fallbacks;  ///< Fallbacks of passes on this machine.
};

/// Records a function as CompiledFunction does, runs the passes, and times the graph at each
/// requested stage. Has no effects except those of time_graphs(). Throws UsageError for an unknown
/// stage, or one whose pass is disabled.
GraphStages graph_stages(
    const std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>& function,
    const std::vector<at::Tensor>& arguments, const GraphNames& names,
    const StagesConfig& config = {});

}  // namespace gallop::compile
