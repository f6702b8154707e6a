#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace gallop::compile {

struct Graph;

/// What became of the calls of a compiled function.
struct CompileReport {
  int64_t graphs = 0;    ///< One for each set of shapes and each mode.
  int64_t recorded = 0;  ///< Calls that ran as they are and were recorded.
  int64_t replayed = 0;  ///< Calls that ran a graph.
  int64_t eager = 0;     ///< Calls that ran as they are, as they cannot be recorded.
  /// Why those could not be, each reason once.
  std::vector<std::string> reasons;
};

struct CompileConfig {
  int64_t graphs = 8;                     ///< At most; further shapes run as they are.
  std::vector<std::string> passes_off{};  ///< Names of those not to run; see all_passes().
};

/// A function that is another one in each mode, such as with and without counting of guesses.
using FunctionOfMode =
    std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& arguments, int64_t mode)>;

/// Calls a function of tensors, and from the third call with the same shapes and mode on runs what
/// it did instead of it. The first two calls are recorded; only what they have in common is
/// trusted: a number that the host computes anew at each call must be an argument, a tensor. What
/// cannot be recorded runs as it is, and the report says why.
class CompiledFunction {
 public:
  /// `state` are tensors that the function works on besides its arguments: where one has got other
  /// memory since a recording, everything is recorded anew. Other tensors that the function uses
  /// are kept as they were.
  CompiledFunction(FunctionOfMode function, std::vector<at::Tensor> state,
                   const CompileConfig& config = {});
  ~CompiledFunction();

  std::vector<at::Tensor> operator()(const std::vector<at::Tensor>& arguments, int64_t mode = 0);

  const CompileReport& report() const;

  /// What replayed calls run, one for each set of shapes and each mode. Valid until the next call.
  std::vector<const Graph*> graphs() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gallop::compile
