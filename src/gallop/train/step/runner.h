#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/compile/compiled_function.h"
#include "gallop/model/model.h"
#include "gallop/optim/optimizer.h"
#include "gallop/train/step/config.h"
#include "gallop/train/step/function.h"
#include "gallop/train/step/memory_shortage.h"
#include "gallop/train/step/sharing.h"
#include "gallop/train/step/tensors.h"
#include "gallop/train/tensor_snapshot.h"

namespace gallop::train {

/// Runs a StepFunction, eager or compiled. If a micro-batch does not fit in memory, micro-batches
/// are split in two from then on, and the step is repeated.
class StepRunner {
 public:
  /// What a runner works on; all must outlive it.
  struct Parts {
    StepFunction& function;
    const model::Model& model;
    const optim::Optimizer& optimizer;
    const StepConfig& config;
    const StepSharing& sharing;
    const StepInputs& like;    ///< Names and number of the inputs of each step.
    bool returns_one = false;  ///< StepOutputs::in_one() alone instead of StepOutputs::pack().
  };
  explicit StepRunner(const Parts& parts);

  /// Throws StepDoesNotFit if a single sample does not fit. `step` counts from 0.
  std::vector<at::Tensor> run(const StepInputs& inputs, bool count_correct, int64_t step);

  /// The eager step, without regard to memory.
  std::vector<at::Tensor> compute(const StepInputs& inputs, bool count_correct);

  /// See MicroBatches::splits().
  void set_splits(int64_t splits);
  /// The allocator's message at the last split.
  const std::string& why_split() const { return why_split_; }
  /// Null if the step is eager.
  const compile::CompiledFunction* compiled() const { return compiled_ ? &*compiled_ : nullptr; }
  /// Before a step whose results are to be discarded: plans the stages of a pipeline.
  void plan(const NamedTensors& batch);

 private:
  void require_unchanged(const std::string& why, int64_t step) const;
  void split(const MemoryShortage& shortage, int64_t step);

  Parts parts_;
  std::optional<compile::CompiledFunction> compiled_;
  TensorSnapshot snapshot_;  ///< What a step changes before its update, to restore it.
  std::string why_split_;
};

}  // namespace gallop::train
