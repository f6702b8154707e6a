#include "gallop/compile/passes.h"

#include <algorithm>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/compile/passes/passes.h"
#include "gallop/kernel/isa.h"

namespace gallop::compile {

namespace {

template <void (*kRun)(Graph&)>
void plain(Graph& graph, PassContext&) {
  kRun(graph);
}

}  // namespace

const std::vector<Pass>& all_passes() {
  using enum Pass::Kind;
  static const std::vector<Pass> kPasses = {
      {"functionalize", "changes in place become new values", plain<passes::functionalize>},
      {"cse", "equal calls are made once", plain<passes::cse>},
      {"merge-casts", "conversions that undo each other go", plain<passes::merge_casts>},
      {"merge-matmuls", "products of one tensor with several weights become one",
       plain<passes::merge_matmuls>, kRounds},
      {"batch-norms", "batch norm, residual and ReLU become a kernel", plain<passes::batch_norms>,
       kToKernels},
      {"layer-norms", "layer norm with sum and cast becomes a kernel", plain<passes::layer_norms>,
       kToKernels},
      {"attention", "attention over packed heads becomes a kernel", plain<passes::attention>,
       kToKernels},
      {"cross-entropy", "softmax cross-entropy becomes a kernel", plain<passes::cross_entropy>,
       kToKernels},
      {"activations", "activations with their bias become kernels", plain<passes::activations>,
       kToKernels},
      {"linear-wgrads", "weight gradients of large linear layers become a kernel",
       plain<passes::linear_wgrads>, kToKernels},
      {"linear-gemms", "other products of large linear layers become a kernel",
       plain<passes::linear_gemms>, kToKernels},
      {"convolutions", "convolutions of few channels become kernels", plain<passes::convolutions>,
       kToKernels},
      {"narrow-gradients", "optimizers take bf16 gradients as they come",
       plain<passes::narrow_gradients>},
      {"bf16-weights", "updates write the bf16 copies of weights", passes::bf16_weights},
      {"norm-loops", "norms become operators that fuse takes, on a GPU", passes::norm_loops,
       kToKernels},
      {"dce", "unused results are removed", plain<passes::dce>},
      {"fuse", "pointwise operators with their reductions become generated loops", passes::fuse,
       kRounds},
      {"barriers", "blocks that are computed again read what was kept", plain<passes::barriers>},
      {"rematerialize", "cheap values are computed again rather than kept",
       plain<passes::rematerialize>},
      {"schedule", "nodes run in the order that needs least memory", plain<passes::schedule>},
  };
  return kPasses;
}

std::vector<std::string> names_of_rounding_passes() {
  std::vector<std::string> names;
  for (const Pass& pass : all_passes()) {
    if (!pass.keeps_bits()) names.emplace_back(pass.name);
  }
  return names;
}

void run_passes(Graph& graph, const std::vector<std::string>& off, PassContext& context,
                const std::function<void(const Pass& pass)>& after) {
  for (const std::string& name : off) {
    const auto& all = all_passes();
    if (std::none_of(all.begin(), all.end(), [&](const Pass& pass) { return pass.name == name; })) {
      throw UsageError(fmt::format("there is no compiler pass '{}'", name));
    }
  }
  const bool kernels = kernel::kernels_are_allowed();
  for (const Pass& pass : all_passes()) {
    const bool wanted = std::find(off.begin(), off.end(), pass.name) == off.end();
    if (!wanted || (pass.kind == Pass::Kind::kToKernels && !kernels)) continue;
    pass.run(graph, context);
    if (after) after(pass);
  }
}

}  // namespace gallop::compile
