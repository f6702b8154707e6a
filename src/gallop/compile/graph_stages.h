#pragma once

#include <functional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/compile/graph_listing.h"
#include "gallop/compile/graph_names.h"
#include "gallop/compile/graph_times.h"

namespace gallop::compile {

/// Where a graph stands on its way through the passes.
struct StageInfo {
  std::string name;  ///< "recorded", or a pass's.
  std::string help;
};

/// "recorded", then every pass in the order in which they run.
std::vector<StageInfo> all_stages();

/// Throws UsageError unless `name` is a stage's, "last", or empty.
void check_stage(const std::string& name);

struct StagesConfig {
  std::string only{};  ///< Name of the one stage that is wanted, or "last"; empty: all.
  std::vector<std::string> passes_off{};  ///< As in CompileConfig.
  TimingConfig timing{};
};

/// What compiling a function comes to.
struct GraphStages {
  std::string refusal;  ///< Why it cannot be recorded; there are no stages then.
  std::vector<GraphStage> stages;
  std::vector<std::string> fallbacks;  ///< What passes could not do on this machine.
};

/// Records a dry run of a function, as CompiledFunction does before it trusts a graph, runs the
/// passes, and times the graph at each stage that is wanted. Nothing has happened afterwards but
/// what time_graphs() says. Throws UsageError for a stage that there is not, or whose pass is off.
GraphStages graph_stages(
    const std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>& function,
    const std::vector<at::Tensor>& arguments, const GraphNames& names,
    const StagesConfig& config = {});

}  // namespace gallop::compile
