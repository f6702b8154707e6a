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

/// What became of the calls of a compiled function.
struct CompileReport {
  int64_t graphs = 0;    ///< One for each set of shapes and each mode.
  int64_t recorded = 0;  ///< Trial calls; see record().
  int64_t replayed = 0;  ///< Calls that ran a graph.
  int64_t captured = 0;  ///< Of those, as one graph of the device; see Replayer.
  int64_t verified = 0;  ///< Replayed after a comparison with the function.
  int64_t eager = 0;     ///< Calls that ran as they are, as they cannot be recorded.
  /// Why those could not be, each reason once.
  std::vector<std::string> reasons;
  /// What passes and devices could not do on this machine, each line once.
  std::vector<std::string> fallbacks;
};

struct CompileConfig {
  int64_t graphs = 8;  ///< At most; further shapes run as they are.
  /// Every so many calls the function has a dry run beside its graph, and a difference ends the
  /// run; see find_difference(). 0: never.
  int64_t verify_every = 0;
  std::vector<std::string> passes_off{};  ///< Names of those not to run; see all_passes().
  MakeDeviceGraph make_device_graph = compile::make_device_graph;
};

/// A function that is another one in each mode, such as with and without counting of guesses.
using FunctionOfMode =
    std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& arguments, int64_t mode)>;

/// Whether this thread is within a trial call that is recorded; see record().
bool is_recording();

/// Runs what a function of tensors does instead of the function: its operators, as a graph that
/// passes have made faster. All calls run it, from the first on, so that a run that was interrupted
/// computes the same bits as one that was not. The first two calls with the same shapes and mode
/// are recorded before, in dry runs, and only what they have in common is trusted: a number that
/// the host computes again at each call must be an argument, a tensor. What cannot be recorded runs
/// as it is, and the report says why.
class CompiledFunction {
 public:
  /// `state` are tensors that the function works on besides its arguments: where one has got other
  /// memory since a recording, everything is recorded again. Other tensors that the function uses
  /// are kept as they were.
  CompiledFunction(FunctionOfMode function, std::vector<at::Tensor> state,
                   const CompileConfig& config = {});
  ~CompiledFunction();

  /// Throws InternalError where the graph is found to compute something else.
  std::vector<at::Tensor> operator()(const std::vector<at::Tensor>& inputs, int64_t mode = 0);

  /// After a call that threw: whether it may have changed any of these. Recording changes nothing,
  /// and a graph what the nodes change that it has come to.
  bool has_changed(const std::vector<at::Tensor>& state) const;

  /// Drops all graphs and their memory. They are recorded again when they are called for.
  void forget();

  const CompileReport& report() const;

  /// What replayed calls run, one for each set of shapes and each mode. Valid until the next call.
  std::vector<const Graph*> graphs() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gallop::compile
