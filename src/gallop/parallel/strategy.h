#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gallop/config/component.h"
#include "gallop/optim/optimizer.h"
#include "gallop/parallel/collectives.h"
#include "gallop/tensor/logical_tensor.h"
#include "gallop/tensor/named_tensor.h"
#include "gallop/tensor/tensor_group.h"

namespace gallop {
class BlockHooks;
}
namespace gallop::optim {
class UpdatedParameters;
}

namespace gallop::parallel {

class DeviceMesh;
class ModelAverager;
class ParameterShards;
class Pipeline;
struct PendingCollective;

/// Makes an optimizer, with its wrappers, of these parameters and of the model's buffers.
using MakeOptimizer = std::function<std::unique_ptr<optim::Optimizer>(
    const NamedTensors& parameters, const NamedTensors& buffers)>;

/// How the processes of a training divide a step. A strategy wraps a model from outside: it knows
/// the parameters and receives their gradients, and the model does not depend on it.
class Strategy {
 public:
  virtual ~Strategy() = default;

  virtual Collectives& collectives() = 0;
  /// The processes among which every batch is divided, in the order of its parts. With another
  /// model_parallel_group(), they are one process of each such group.
  virtual Collectives& data_parallel_group() { return collectives(); }
  /// The processes that compute a part of a batch together, and draw what one process would; null
  /// if each computes one alone.
  virtual Collectives* model_parallel_group() { return nullptr; }
  /// The processes that compute each forward pass together, so that evaluations also need all of
  /// them; null if each computes its own alone.
  virtual Collectives* forward_group() { return nullptr; }
  /// Whether the processes of forward_group() have different parts of each batch, so that all of
  /// them need as many forward passes as the one that has the most, the others without samples.
  virtual bool divides_forward_by_samples() const { return false; }
  /// The processes that divide the batches of an evaluation: one of each forward_group(), or all of
  /// them with divides_forward_by_samples().
  virtual Collectives& evaluation_group() { return collectives(); }

  /// The tensors other than those of model and optimizer that a step reads or writes.
  virtual NamedTensors state() const = 0;

  /// The state that differs among processes, which a checkpoint keeps for each rank.
  virtual NamedTensors rank_state() const { return {}; }
  /// Restores the saved state of process `rank` of `size`, ignoring unknown names and shapes. Must
  /// be called in all processes for each rank in turn, from 0.
  virtual void load_rank_state(const NamedTensors& /*saved*/, int /*rank*/, int /*size*/) {}

  /// What the optimizer updates in this process, if that is not all parameters; otherwise null.
  virtual const optim::UpdatedParameters* updated() const { return nullptr; }
  /// The optimizer of that. `buffers` are all of the model. Must be called if updated() is not
  /// null.
  virtual std::unique_ptr<optim::Optimizer> make_optimizer(const NamedTensors& buffers,
                                                           const MakeOptimizer& make) const;
  /// How the model is divided, in words; empty if there is nothing to say.
  virtual std::string describe() const { return {}; }

  /// If each process updates only its shards of the parameters: these; otherwise null.
  virtual const ParameterShards* shards() const { return nullptr; }

  /// What the model must call around its blocks (Model::set_block_hooks()); null for nothing.
  virtual BlockHooks* block_hooks() { return nullptr; }
  /// Must be called before each step, counted from 0, after which parameters of the model may be
  /// there only within a step.
  virtual void begin_step(int64_t /*step*/) {}
  /// Must be called after each step, whose update is complete.
  virtual void end_step() {}
  /// If processes train replicas of the model that differ between synchronizations: what
  /// synchronizes them; otherwise null.
  virtual ModelAverager* averager() { return nullptr; }
  /// Makes all parameters whole until the next step. All processes call it together.
  virtual void gather_parameters() {}
  /// Leaves only this process's parts of them, if it has parts.
  virtual void release_parameters() {}
  /// If each process has only its parts of the parameters between steps: these, with those
  /// parameters that it has as a whole; otherwise empty. Where evaluations use the parts, they are
  /// what the model has.
  virtual std::vector<LogicalTensor> parameters_in_parts() const { return {}; }
  /// Must be called by all processes together after these have been replaced.
  virtual void parameters_replaced() {}
  /// Whether the model's parameters are now this process's parts, rather than whole tensors.
  virtual bool model_is_in_parts() const { return false; }
  /// Must be called before each forward pass of a step.
  virtual void begin_forward() {}
  /// If each process has some of the model's layers, through which batches pass: this; otherwise
  /// null.
  virtual const Pipeline* pipeline() const { return nullptr; }

  /// The number of slices of the whole batch, a multiple of the number of processes. Each slice is
  /// computed separately, in order; finish_slice() is called after its backward pass, or without
  /// one if the slice has no samples. 0: each process computes its slice in any way.
  virtual int64_t batch_slices() const { return 0; }
  virtual void finish_slice(int64_t /*slice*/, bool /*has_samples*/) {}

  /// Whether batch norm takes the statistics of the whole batch.
  virtual bool shares_batch_norm() const { return false; }

  /// Parameters without a gradient in the first backward pass with samples; their gradients count
  /// as 0.
  virtual const std::vector<std::string>& unused() const { return unused_; }

  /// Whether the gradients of each micro-batch are summed over all processes at once, of which all
  /// then have the same number; otherwise a process adds up those of its own micro-batches before.
  virtual bool sums_each_micro_batch() const { return false; }

  struct Pass {
    int64_t rows = 0;  ///< Of the whole batch.
    /// Among the passes of a step that are summed: one, or all micro-batches.
    bool is_first = true, is_last = true;
  };
  /// Must be called between the last forward and backward pass of a step, or those of each
  /// micro-batch, and with slices before all of them. Gradients may then be all-reduced as soon as
  /// they are available.
  virtual void begin_gradient_sync(const Pass& pass) = 0;

  /// The collectives from the first begin_forward() of a step of so many passes to the end of the
  /// last finish_gradient_sync(), in this order, so that a process that fails in a step can take
  /// part in those of the others. Empty if they depend on the model's layers, or if batch
  /// slices must not be split.
  virtual std::optional<std::vector<PendingCollective>> collective_calls(int64_t passes) const;
  /// Ends a pass, and discards its sums, because a process failed in the step.
  virtual void abort_sync() {}

  /// Must be called after the backward pass, or without any pass if this process has no samples.
  /// Each parameter's gradient is then the sum over all processes, and the buffers are equal in
  /// all.
  virtual void finish_gradient_sync() = 0;

 protected:
  /// Records once which parameters have no gradient, neither in themselves nor, by `is_moved`,
  /// where it has been moved to. Must be called after a backward pass, before gradients are
  /// removed.
  void note_unused(
      const NamedTensors& parameters,
      const std::function<bool(const at::Tensor&)>& is_moved = [](const auto&) { return false; });

 private:
  std::vector<std::string> unused_;
  bool has_noted_unused_ = false;
};

/// The names of a model's tensors by blocks, between which a pipeline cuts it.
struct ModelBlocks {
  std::vector<std::vector<std::string>> tensors{};  ///< Of each block; empty: it cannot be cut.
  std::vector<std::string> tied{};  ///< Of the first block, which the last one reads as well.
};

/// The live tensors of a model, which a strategy wraps.
struct ModelTensors {
  NamedTensors parameters, buffers;
  /// Names of parameters in the order in which a backward pass produces their gradients; parameters
  /// that are not listed come last, in reverse order.
  std::vector<std::string> gradient_order{};
  /// How the optimizer's update can be divided (Optimizer::update_units()), for strategies for
  /// which divides_update() is true.
  std::vector<optim::UpdateUnit> update_units{};
  /// The names of the parameters of each block: Model::block_parameters().
  std::vector<std::vector<std::string>> blocks{};
  ModelBlocks sequence{};  ///< For pipelines: Model::block_sequence().
  /// For tensor parallelism: Model::parallelize().
  std::function<ParallelizedModel(const TensorGroup& group)> parallelize{};
  /// For expert parallelism: Model::divide_experts().
  std::function<ParallelizedModel(const TensorGroup& group)> divide_experts{};
  /// For context parallelism: Model::divide_tokens().
  std::function<void(const TensorGroup& group, ContextMethod method)> divide_tokens{};
  /// Parameters that have been divided along tp.
  std::vector<LogicalTensor> divided{};
};

/// The processes of a training as a `parallel:` section arranges them. Throws UsageError, with the
/// nearest numbers, if they cannot be.
DeviceMesh mesh_of(const config::Component& strategy, int processes);

/// The strategies that the `parallel:` section of a recipe chooses from.
using StrategyRegistry = config::Registry<Strategy, Collectives&, const ModelTensors&>;

/// Every strategy that comes with Gallop.
StrategyRegistry built_in_strategies();

/// Among how many processes a strategy divides parameters, gradients and the optimizer's state.
struct Shares {
  int64_t parameters = 1, gradients = 1, state = 1;
};
Shares shares_of(const config::Component& strategy, int processes);
/// The shares of a strategy that divides them among all processes, or none: "zero-2".
Shares shares_of(const std::string& strategy, int64_t processes);

/// Whether the strategy of this name divides the optimizer's update among several processes.
bool divides_update(const std::string& strategy);
/// Whether processes train replicas of the model that differ between synchronizations.
bool trains_replicas(const std::string& strategy);
/// How replicas share the update: "ddp", "zero-1" or "zero-2".
std::string data_parallel_of(const config::Component& strategy);

}  // namespace gallop::parallel
