#pragma once

#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

namespace gallop::parallel {

/// The backward pass of a pipeline's stage in two parts, for zero-bubble schedules (Qi et al.,
/// "Zero bubble pipeline parallelism", ICLR 2024): the gradient of the stage's input, and those of
/// its weights. Each operator computes in each part only the gradients that this part is for.
class StageBackward {
 public:
  /// Computes the gradient of `input`, a leaf, which gets it as its grad(), from that of `output`.
  /// An input that requires no gradient has none.
  StageBackward(const at::Tensor& output, const at::Tensor& gradient, const at::Tensor& input);
  ~StageBackward();
  StageBackward(StageBackward&&) noexcept;
  StageBackward& operator=(StageBackward&&) noexcept;

  /// Accumulates the gradients of all other leaves. Must be called once; frees the graph.
  void compute_weight_gradients();

 private:
  struct Part;  // Weights whose gradients follow from those of one operator's outputs.

  at::Tensor output_, gradient_;
  std::vector<std::unique_ptr<Part>> parts_;
  bool is_divided_ = false;
};

}  // namespace gallop::parallel
