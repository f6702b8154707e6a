#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

namespace gallop::model {

class ContextParallel;
class TensorParallel;

/// The part of the outputs that the last layer has in a process, and the group of it; null: all.
struct OutputPart {
  std::shared_ptr<const TensorParallel> parallel{};
  int64_t classes = 0;  ///< Of all processes.
};

/// The output of a model: logits, or the operands of the last GEMM. A loss can compute that GEMM in
/// parts, so that the logits of a large vocabulary are never materialized.
struct Output {
  at::Tensor x;         ///< Logits [.., C]; if `weight` is defined, [.., K].
  at::Tensor weight{};  ///< [C, K], or undefined.
  at::Tensor loss{};    ///< The mean loss of the batch, if the model computes one; a scalar.
  /// Several predictions of each sample, [N, members, ...], whose mean loss is to be minimized; 0:
  /// a single one.
  int64_t members = 0;
  /// What is minimized in addition, such as the balance of experts, summed over the elements of the
  /// input (tokens); the loss has its mean. Undefined: nothing.
  at::Tensor auxiliary_loss{};
  /// What the model counts in training; see Model::statistics_size().
  at::Tensor step_statistics{};

  /// If processes have different rows of `weight`, and so different logits: which. `x` is equal in
  /// all, or has the logits of this process if `weight` is undefined.
  OutputPart part{};
  /// What blocks before the last one pass on to the next, in which case all else is undefined; see
  /// Model::forward_blocks().
  std::vector<at::Tensor> passed_on{};
  /// If `x` has only this process's tokens, [B, t, ...]: how they are divided; otherwise null.
  std::shared_ptr<const ContextParallel> context{};

  /// Returns x weight^T if `weight` is defined, otherwise x. Those of other processes are gathered.
  at::Tensor logits() const;
};

}  // namespace gallop::model
