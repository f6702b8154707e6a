#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/parallel/parameter_buckets.h"
#include "gallop/parallel/strategy.h"
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

  /// Whether all parameters are there at the moment, so that forward passes without a backward pass
  /// gather nothing.
  bool are_whole() const { return buckets_.is_whole(); }

  /// Must precede each forward pass of a step.
  void begin_forward();
  /// Must precede each forward pass without a backward pass, equally often in all processes, and
  /// does what is left of the one before.
  void begin_inference();
  /// Does what is left of the last such pass.
  void end_inference();
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

  /// What is done in a pass, with the numbers of actions after which each block has what it needs.
  struct Plan {
    std::vector<Action> actions{};
    std::vector<size_t> forward{}, forward_end{}, backward{};  ///< `forward_end`: needs no longer.
    size_t first = 0;                                          ///< Before the forward pass.
    size_t backward_begin = 0;
  };

  Plan plan_step() const;
  Plan plan_inference() const;
  void begin(const Plan& plan);
  void run_to(size_t end, const at::Tensor& after);
  void before_backward(size_t block, const at::Tensor& gradient);

  const ParameterBuckets& buckets_;
  Config config_;
  Plan step_, inference_;
  const Plan* pass_ = nullptr;  // The one under way.
  size_t next_ = 0;             // Action.
};

/// What gathers the parameters of the strategy's model by block; null if it does not divide them.
BlockGathers* block_gathers_of(Strategy& strategy);

}  // namespace gallop::parallel
