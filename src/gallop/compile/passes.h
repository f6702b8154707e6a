#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gallop/compile/codegen/compiler.h"
#include "gallop/compile/graph.h"

namespace gallop::compile {

class Bf16WeightCache;

/// The context of passes besides the graph.
struct PassContext {
  KernelCompiler& compiler;
  Bf16WeightCache* weight_cache = nullptr;  ///< Null if bf16 copies are not kept up to date.
  std::vector<std::string> fallbacks{};     ///< Fallbacks on this machine, a line each.
};

/// A transformation of a graph that preserves its semantics.
struct Pass {
  enum class Kind {
    kExact,
    kRounds,     ///< Adds in another order, or uses other implementations of functions than
                 ///< LibTorch.
    kToKernels,  ///< Inserts Gallop's kernels, which also round differently, and may be disabled
                 ///< altogether.
  };
  const char* name = nullptr;
  const char* help = nullptr;
  void (*run)(Graph& graph, PassContext& context) = nullptr;
  Kind kind = Kind::kExact;

  /// Whether results are bit-identical to those of the operators.
  bool keeps_bits() const { return kind == Kind::kExact; }
};

/// All passes, in the order in which they run.
const std::vector<Pass>& all_passes();

/// Names of the passes that may change bits.
std::vector<std::string> names_of_rounding_passes();

/// Runs all passes except those in `off`, and calls `after` after each. Throws UsageError for an
/// unknown name.
void run_passes(Graph& graph, const std::vector<std::string>& off, PassContext& context,
                const std::function<void(const Pass& pass)>& after = {});

}  // namespace gallop::compile
