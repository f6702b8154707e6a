#pragma once

#include <string>
#include <vector>

#include <c10/core/Device.h>

#include "gallop/model/exported/schema.h"

namespace gallop::model::exported {

/// How often a kind of operator was switched to evaluation.
struct SwitchedOperator {
  std::string name;  ///< "dropout", "batch_norm".
  int64_t count = 0;
};

/// A program exported in training mode, switched to evaluation.
struct EvaluationProgram {
  Program program;
  std::vector<SwitchedOperator> switched{};
  /// The nodes that still draw random numbers or write buffers, so that it is unknown what they do
  /// in evaluation: it must be exported as a program of its own. Empty: the program can be used.
  std::vector<std::string> unknown{};

  /// What is wrong with an archive of which some are unknown, and the remedy.
  std::string problem() const;
};

/// torch.export freezes the mode. As Module.eval() does: dropout of all kinds is turned off, batch
/// norm and instance norm use their running statistics if they have some, and batches are not
/// counted.
EvaluationProgram switch_to_evaluation(const Program& program);

/// The first node that draws from LibTorch's generator in training on such a device; empty if there
/// is none. See find_random_operator().
std::string first_draw(const Graph& graph, c10::Device device);

}  // namespace gallop::model::exported
