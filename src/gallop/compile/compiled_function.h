#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/compile/device_graph.h"

namespace gallop::compile {

struct Graph;

/// Statistics of the calls of a compiled function.
struct CompileReport {
  int64_t graphs = 0;    ///< One for each combination of shapes and mode.
  int64_t recorded = 0;  ///< Dry runs; see record().
  int64_t replayed = 0;  ///< Calls that ran a graph.
  int64_t captured = 0;  ///< Those replayed as one graph of the device; see Replayer.
  int64_t verified = 0;  ///< Replayed after a comparison with the function.
  int64_t eager = 0;     ///< Calls that ran eagerly, as they cannot be recorded.
  /// Why those cannot be recorded, each reason once.
  std::vector<std::string> reasons;
  /// Fallbacks of passes and devices on this machine, each line once.
  std::vector<std::string> fallbacks;
};

struct CompileConfig {
  int64_t graphs = 8;  ///< Maximum; further shapes run eagerly.
  /// Number of calls after which the graph is compared with a dry run of the function; a difference
  /// ends the run (see find_difference()). 0: never.
  int64_t verify_every = 0;
  std::vector<std::string> passes_off{};  ///< Names of passes that are disabled; see all_passes().
  MakeDeviceGraph make_device_graph = compile::make_device_graph;
};

/// A function that depends on a mode, such as with and without counting correct predictions.
using FunctionOfMode =
    std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& arguments, int64_t mode)>;

/// Replaces a function of tensors by a graph of its operators that passes have optimized. All calls
/// run the graph, including the first, so that an interrupted run computes the same bits as an
/// undisturbed one. For each combination of shapes and mode the function is first recorded in two
/// dry runs, which must agree: a scalar that the host computes at each call must be an argument, a
/// tensor. A function that cannot be recorded runs eagerly, and the report says why.
class CompiledFunction {
 public:
  /// `state` are the tensors besides the arguments that the function reads and writes: if one moves
  /// to another address, everything is recorded again. Other tensors that the function uses must
  /// not change.
  CompiledFunction(FunctionOfMode function, std::vector<at::Tensor> state,
                   const CompileConfig& config = {});
  ~CompiledFunction();

  /// Throws InternalError if verification finds a difference.
  std::vector<at::Tensor> operator()(const std::vector<at::Tensor>& inputs, int64_t mode = 0);

  /// After a call that threw: whether it may have changed any of these tensors. Recording changes
  /// nothing, and a graph only what its executed nodes change.
  bool has_changed(const std::vector<at::Tensor>& state) const;

  /// Discards all graphs and their memory. They are recorded again on demand.
  void forget();

  const CompileReport& report() const;

  /// The graphs of replayed calls, one for each combination of shapes and mode. Valid until the
  /// next call.
  std::vector<const Graph*> graphs() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gallop::compile
