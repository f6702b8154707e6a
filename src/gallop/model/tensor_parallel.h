#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/kernel/dropout.h"
#include "gallop/model/functional/tensor_parallel.h"
#include "gallop/tensor/named_tensor.h"
#include "gallop/tensor/tensor_group.h"

namespace gallop::model {

/// How a linear layer is divided, as in torch.distributed.tensor.parallel.
enum class ParallelStyle : uint8_t {
  kColwise,  ///< By outputs: rows of the weight [out, in]; ends with a part of the outputs.
  kRowwise,  ///< By inputs: columns of the weight; begins with that part, ends with a sum.
};

/// How the layers of a model are divided among processes (Shoeybi et al., "Megatron-LM", 2019),
/// with sequence-parallel regions between them (Korthikanti et al., "Reducing activation
/// recomputation in large transformer models", 2022). Layers divide their parameters by it when the
/// model is parallelized, and enter and leave parallel regions by it in each pass.
///
/// Within a parallel region a process has all tokens and a part of the heads or channels. Outside,
/// it has all channels and all tokens or, if the group is sequence_parallel(), a part of the
/// tokens. Activations are [B, T, C].
///
/// Experts are divided by shard() alone.
class TensorParallel {
 public:
  /// The group must outlive it.
  explicit TensorParallel(const TensorGroup& group) : group_(group) {}

  /// Replaces a parameter by this process's part along a dimension, of each of `groups` equal
  /// groups, such as queries, keys and values.
  void shard(const at::Tensor& parameter, int64_t dim, int64_t groups = 1);
  /// Notes that a parameter is read outside of parallel regions, on this process's tokens.
  void note_outside(const at::Tensor& parameter);
  /// Throws UsageError unless the processes divide `size` of `what`, such as "attention heads";
  /// `option` is the one that sets it.
  void require_divisible(int64_t size, const std::string& what, const std::string& option) const;
  /// What has been done to the tensors, by their names.
  ParallelizedModel result(const NamedTensors& tensors) const;

  /// This process's part of a dimension: equal ones if the processes divide it.
  functional::PartRange part_of(int64_t size) const;
  const TensorGroup& group() const { return group_; }

  /// Copies or, with sequence parallelism, gathers the tokens; the gradient is summed over the
  /// processes, as each computes it from its part of the region.
  at::Tensor enter(const at::Tensor& x) const;
  /// The sum over the processes, with sequence parallelism of this process's tokens.
  at::Tensor leave(const at::Tensor& partial) const;
  /// This process's tokens of what all compute alike, and the way back. Unchanged without sequence
  /// parallelism.
  at::Tensor scatter_tokens(const at::Tensor& x) const;
  at::Tensor gather_tokens(const at::Tensor& x) const;
  /// As scatter_tokens(), along a dimension, for what has no gradient or gives it to a parameter
  /// for which note_outside() has been called.
  at::Tensor own_tokens(const at::Tensor& x, int64_t dim) const;
  /// Begins a pass over inputs of so many tokens.
  void begin_pass(int64_t tokens) const { tokens_ = tokens; }

  /// Where the elements of `x`, a part along a dimension of a tensor that has `size` there, lie in
  /// that, so that they draw the random numbers that they would draw in one process.
  kernel::DropoutPart part(const at::Tensor& x, int64_t dim, int64_t size) const;
  /// The part of activations outside of parallel regions.
  kernel::DropoutPart part_outside(const at::Tensor& x) const;

 private:
  const TensorGroup& group_;
  std::map<const at::TensorImpl*, LogicalTensor> divided_;
  std::vector<const at::TensorImpl*> outside_;
  mutable int64_t tokens_ = 0;  // Tokens of all processes, in this pass.
};

/// Throws UsageError, with the nearest numbers, unless `processes` divide `size` of `what`, such as
/// "attention heads". `option` sets it, and `strategy` is "tensor", "context" or "expert".
/// `alternative`: what else the user can do, such as "set OPTION"; empty: nothing.
void require_divisible(const std::string& strategy, int processes, int64_t size,
                       const std::string& what, const std::string& option,
                       const std::string& alternative = "");

}  // namespace gallop::model
