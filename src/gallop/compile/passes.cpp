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
      {"functionalize", "replaces in-place operators by functional ones",
       plain<passes::functionalize>},
      {"cse", "eliminates common subexpressions", plain<passes::cse>},
      {"fold-constants", "computes what depends on sizes alone once",
       plain<passes::fold_constants>},
      {"slice-gradients", "joins gradients of slices instead of adding them up with zeros",
       plain<passes::slice_gradients>, kRounds},
      {"attention-masks", "replaces constant causal masks of attention by its flag",
       plain<passes::attention_masks>, kRounds},
      {"merge-casts", "removes casts that cancel out", plain<passes::merge_casts>},
      {"merge-matmuls", "merges GEMMs of one tensor with several weights",
       plain<passes::merge_matmuls>, kRounds},
      {"pooling", "replaces global average pooling by a kernel", plain<passes::pooling>,
       kToKernels},
      {"batch-norms", "replaces batch norm, residual and activation by a kernel",
       plain<passes::batch_norms>, kToKernels},
      {"layer-norms", "replaces layer norm, addition and cast by a kernel",
       plain<passes::layer_norms>, kToKernels},
      {"attention", "replaces attention over packed heads by a kernel", plain<passes::attention>,
       kToKernels},
      {"cross-entropy", "replaces softmax cross-entropy by a kernel", plain<passes::cross_entropy>,
       kToKernels},
      {"linear-layers", "replaces small linear layers, their ReLU and gradients by a kernel",
       plain<passes::linear_layers>, kToKernels},
      {"activations", "replaces activations and their bias by kernels", plain<passes::activations>,
       kToKernels},
      {"linear-wgrads", "selects a kernel for large weight gradients in bf16",
       plain<passes::linear_wgrads>, kToKernels},
      {"linear-gemms", "selects a kernel for other large GEMMs in bf16",
       plain<passes::linear_gemms>, kToKernels},
      {"convolutions",
       "selects kernels for convolutions in bf16, their gradients, and depthwise ones",
       plain<passes::convolutions>, kToKernels},
      {"narrow-gradients", "passes bf16 gradients to the optimizer without a cast",
       plain<passes::narrow_gradients>},
      {"bf16-weights", "lets the update write the bf16 copies of weights", passes::bf16_weights},
      {"norm-loops", "decomposes norms into operators for fuse, on a GPU", passes::norm_loops,
       kToKernels},
      {"ordered-joins", "joins tensors in the layout to which the result is copied",
       plain<passes::ordered_joins>},
      {"copies", "removes copies whose original does not change", plain<passes::copies>},
      {"dce", "removes dead code", plain<passes::dce>},
      {"recompute", "recomputes pointwise results in later loops instead of storing them, on a GPU",
       plain<passes::recompute>},
      {"fuse", "fuses pointwise operators and reductions into generated loops", passes::fuse,
       kRounds},
      {"barriers", "lets recomputed blocks read saved tensors without a copy",
       plain<passes::barriers>},
      {"rematerialize", "recomputes cheap values instead of keeping them",
       plain<passes::rematerialize>},
      {"schedule", "orders nodes for the smallest peak memory", plain<passes::schedule>},
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
  const bool kernels = kernel::kernels_enabled();
  for (const Pass& pass : all_passes()) {
    const bool wanted = std::find(off.begin(), off.end(), pass.name) == off.end();
    if (!wanted || (pass.kind == Pass::Kind::kToKernels && !kernels)) continue;
    pass.run(graph, context);
    if (after) after(pass);
  }
}

}  // namespace gallop::compile
