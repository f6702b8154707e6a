#include "gallop/compile/passes.h"

#include <algorithm>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/compile/passes/passes.h"
#include "gallop/kernel/isa.h"

namespace gallop::compile {

const std::vector<Pass>& all_passes() {
  static const std::vector<Pass> kPasses = {
      {"make-values", "changes in place become new values", passes::make_values},
      {"merge-equal", "equal calls are made once", passes::merge_equal},
      {"merge-casts", "conversions that undo each other go", passes::merge_casts},
      {"batch-norms", "batch norm, residual and ReLU become a kernel", passes::batch_norms, true},
      {"layer-norms", "layer norm with sum and cast becomes a kernel", passes::layer_norms, true},
      {"attention", "attention over packed heads becomes a kernel", passes::attention, true},
      {"activations", "activations with their bias become kernels", passes::activations, true},
      {"drop-unused", "what nobody uses goes", passes::drop_unused},
  };
  return kPasses;
}

void run_passes(Graph& graph, const std::vector<std::string>& off) {
  for (const std::string& name : off) {
    const auto& all = all_passes();
    if (std::none_of(all.begin(), all.end(), [&](const Pass& pass) { return pass.name == name; })) {
      throw UsageError(fmt::format("there is no compiler pass '{}'", name));
    }
  }
  const bool kernels = kernel::kernels_are_allowed();
  for (const Pass& pass : all_passes()) {
    const bool wanted = std::find(off.begin(), off.end(), pass.name) == off.end();
    if (wanted && (kernels || !pass.to_kernels)) pass.run(graph);
  }
}

}  // namespace gallop::compile
