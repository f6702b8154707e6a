#pragma once

#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

namespace gallop::parallel {

/// The backward pass of a pipeline's stage: accumulates the gradients of all leaves, from those of
/// `outputs`.
void compute_gradients(const std::vector<at::Tensor>& outputs,
                       const std::vector<at::Tensor>& gradients);

/// The same in two parts, for zero-bubble schedules (Qi et al., "Zero bubble pipeline parallelism",
/// ICLR 2024): the gradients of the stage's inputs, and those of its weights. Each operator
/// computes in each part only the gradients that this part is for.
class StageBackward {
 public:
  /// Computes the gradients of `inputs`, leaves, which get them as their grad(), from those of
  /// `outputs`, all of which require one. Inputs that require no gradient have none. An output may
  /// be one of the inputs.
  StageBackward(std::vector<at::Tensor> outputs, std::vector<at::Tensor> gradients,
                const std::vector<at::Tensor>& inputs);
  ~StageBackward();
  StageBackward(StageBackward&&) noexcept;
  StageBackward& operator=(StageBackward&&) noexcept;

  /// Accumulates the gradients of all other leaves. Must be called once; frees the graph.
  void compute_weight_gradients();

 private:
  struct Part;  // Weights whose gradients follow from those of one operator's outputs.

  std::vector<at::Tensor> outputs_, gradients_;
  std::vector<std::unique_ptr<Part>> parts_;
  bool is_divided_ = false;
};

}  // namespace gallop::parallel
