#pragma once

#include <string>
#include <vector>

#include "gallop/parallel/pipeline_schedule.h"

namespace gallop::parallel {

/// What a rank of a pipeline does next: a pass, or a transfer of a pass's result.
struct PipelineInstruction {
  enum class Kind { kCompute, kSend, kReceive };
  Kind kind = Kind::kCompute;
  /// The pass, or the one whose result is transferred: activations after a forward pass, and the
  /// gradient of a stage's input after others. The rank that sends has computed it. Of a pass
  /// kWeightGradient: the last stage's gradient of weights that the first stage reads as well.
  PipelineAction action;
  int peer = -1;  ///< The other rank of a transfer.

  bool operator==(const PipelineInstruction&) const = default;
};

/// "2F0", "2F0 to rank 3", "2F0 from rank 2".
std::string text_of(const PipelineInstruction& instruction);

/// The passes of each rank with their transfers. A receive stands where its send is issued at the
/// latest, so that all ranks have their transfers in one common order: the program ends even if
/// each transfer blocks both ranks until both have come to it.
/// `has_tied_weights`: the last stage sends the gradients of weights to the first stage.
std::vector<std::vector<PipelineInstruction>> pipeline_program(const PipelineSchedule& schedule,
                                                               bool has_tied_weights = false);

}  // namespace gallop::parallel
