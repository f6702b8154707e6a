#pragma once

#include <memory>
#include <string>
#include <vector>

#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>

#include "gallop/model/exported/schema.h"

namespace gallop::model::exported {

struct InterpreterOptions {
  /// Replaces every device of the program, which was exported on another machine.
  c10::Device device = c10::kCPU;
  /// Whether dropout draws Gallop's random numbers, which depend on the seed, the step and the rank
  /// (functional::dropout()), instead of those of LibTorch's default generator.
  bool has_own_dropout = true;
};

/// Runs the graph of an exported program: calls the operators one after the other by their schemas,
/// so that autograd records them as in Python. A value is released after its last use.
class Interpreter {
 public:
  /// Resolves all operators and arguments. Throws DataError, beginning with `file`, that names
  /// node, operator and source line of an operator that LibTorch does not have, or that does not
  /// take such arguments.
  Interpreter(const Graph& graph, const InterpreterOptions& options, const std::string& file);
  ~Interpreter();

  /// `inputs` are those of the graph, in order; constants among them are not checked. Errors of an
  /// operator are UsageErrors that name node, module and source line.
  std::vector<c10::IValue> run(std::vector<c10::IValue> inputs) const;

  /// The number of the graph's inputs.
  size_t inputs() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace gallop::model::exported
