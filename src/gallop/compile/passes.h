#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gallop/compile/codegen/compiler.h"
#include "gallop/compile/graph.h"

namespace gallop::compile {

class Bf16WeightCache;

/// What passes work with besides the graph.
struct PassContext {
  KernelCompiler& compiler;
  Bf16WeightCache* weight_cache = nullptr;  ///< Null where they are not kept up to date.
  std::vector<std::string> fallbacks{};  ///< What could not be done on this machine, a line each.
};

/// A change of a graph that leaves what it computes as it is.
struct Pass {
  enum class Kind {
    kExact,
    kRounds,     ///< Adds up in another order, or has other functions than LibTorch.
    kToKernels,  ///< Puts in kernels of ours, which round too, and may be off altogether.
  };
  const char* name = nullptr;
  const char* help = nullptr;
  void (*run)(Graph& graph, PassContext& context) = nullptr;
  Kind kind = Kind::kExact;

  /// Whether results are those of the operators bit for bit.
  bool keeps_bits() const { return kind == Kind::kExact; }
};

/// All passes, in the order in which they run.
const std::vector<Pass>& all_passes();

/// Those that do not keep the bits.
std::vector<std::string> names_of_rounding_passes();

/// Runs all but those named in `off`, and tells `after` of each when it is through. Throws
/// UsageError for a name that is no pass.
void run_passes(Graph& graph, const std::vector<std::string>& off, PassContext& context,
                const std::function<void(const Pass& pass)>& after = {});

}  // namespace gallop::compile
