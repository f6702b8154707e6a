#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/parallel/parameter_buckets.h"
#include "gallop/parallel/sums.h"
#include "gallop/tensor/block_hooks.h"

namespace gallop::parallel {

/// Gathers the parameters of a model's blocks before their forward and backward passes, those of
/// the next block while one computes, and releases them afterwards. Parameters outside of blocks
/// are there from the beginning of a forward pass to the end of the backward pass.
///
/// What is done in a pass is a list in a fixed order, which all processes go through: to the place
/// that a block needs when it begins, and to the end afterwards, whichever blocks have run.
class BlockGathers final : public BlockHooks {
 public:
  struct Config {
    /// The buckets of each block, and of parameters outside of blocks.
    std::vector<std::vector<size_t>> blocks;
    std::vector<size_t> others;
    /// Whether to release the parameters of a block after its forward pass, to gather them again
    /// before its backward pass.
    bool reshard_after_forward = true;
    /// Called with the number of a block once its backward pass is done, with the number of blocks
    /// for the parameters outside of them: to reduce its gradients.
    std::function<void(size_t block)> reduce;
  };

  /// The buckets must outlive it.
  BlockGathers(const ParameterBuckets& buckets, Config config);

  /// The buckets of a block; of the other parameters for the number of blocks.
  const std::vector<size_t>& buckets_of(size_t block) const;

  /// Must precede each forward pass of a step.
  void begin_forward();
  void before_forward(size_t block, const at::Tensor& input) override;
  void after_forward(size_t block, const std::vector<at::Tensor>& outputs) override;
  /// Does what is left of the forward pass. Must precede the backward pass.
  void end_forward();
  /// Does what is left of a pass. Without a forward pass, does all of it.
  void finish();
  /// Ends a pass as it is, because it has failed.
  void abort();

  /// The gathers of a forward pass, and the collectives of a backward pass, where `reduce` are
  /// those that the call for a block starts.
  std::vector<PendingCollective> forward_calls() const;
  std::vector<PendingCollective> backward_calls(
      const std::function<std::vector<PendingCollective>(size_t block)>& reduce) const;

 private:
  struct Action {
    enum class Kind : uint8_t { kStartGather, kWait, kRelease, kReduce };
    Kind kind;
    size_t block;
  };

  void plan();
  void run_to(size_t end, const at::Tensor& after);
  void before_backward(size_t block, const at::Tensor& gradient);

  const ParameterBuckets& buckets_;
  Config config_;
  std::vector<Action> actions_;
  /// Numbers of actions after which each block has what its pass needs, and from which on it has
  /// not.
  std::vector<size_t> forward_, forward_end_, backward_;
  size_t first_ = 0;  // Actions before the forward pass.
  size_t backward_begin_ = 0;
  size_t next_ = 0;  // Action.
  bool is_in_pass_ = false;
};

}  // namespace gallop::parallel
