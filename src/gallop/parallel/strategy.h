#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gallop/config/component.h"
#include "gallop/parallel/collectives.h"
#include "gallop/tensor/named_tensor.h"

namespace gallop::parallel {

/// How the processes of a training share a step. It wraps a model from outside: it knows its
/// parameters and receives their gradients, and the model is independent of it.
class Strategy {
 public:
  virtual ~Strategy() = default;

  virtual Collectives& collectives() = 0;

  /// What a step works on besides model and optimizer.
  virtual NamedTensors state() const = 0;

  /// What each process has for itself and a checkpoint keeps of each.
  virtual NamedTensors rank_state() const { return {}; }
  /// Gives back what process `rank` of `size` had when it was saved, of which names or shapes that
  /// are not known are left out. To be called in all processes for each rank in turn, from 0.
  virtual void load_rank_state(const NamedTensors& /*saved*/, int /*rank*/, int /*size*/) {}

  /// Into how many shards the whole batch is cut, whatever the number of processes, which divides
  /// it: each is computed by itself, and finish_shard() called after its backward pass or, in its
  /// turn, where it has no samples. 0: each process computes its part as it likes.
  virtual int64_t shards() const { return 0; }
  virtual void finish_shard(int64_t /*shard*/, bool /*has_samples*/) {}

  /// Whether batch norm takes its statistics of the whole batch.
  virtual bool shares_batch_norm() const { return false; }

  /// Parameters that the first backward pass with samples has given no gradient; it counts as 0.
  const std::vector<std::string>& unused() const { return unused_; }

  /// Between the forward and the backward pass that are the last of a step, and with shards before
  /// them all: from here on gradients of parameters may be on their way to all processes as soon as
  /// they are there. `rows`: of the whole batch.
  virtual void begin_gradient_sync(int64_t rows) = 0;

  /// What is summed from begin_gradient_sync() to the end of finish_gradient_sync(), in this order:
  /// so a process that cannot do its part can follow the others. Nothing where that depends on the
  /// model's layers, or where parts of batches are not to be cut.
  virtual std::optional<std::vector<at::Tensor>> sums() const { return {}; }
  /// Such a process was there: what was summed since begin_gradient_sync() is discarded.
  virtual void abort_sync() {}

  /// After that, or without any pass where this process has no samples: each parameter's gradient
  /// is then the sum over all processes, and the buffers are the same in all.
  virtual void finish_gradient_sync() = 0;

 protected:
  /// After a backward pass, before gradients are moved: notes which parameters have none, once.
  void note_unused(const NamedTensors& parameters);

 private:
  std::vector<std::string> unused_;
  bool has_noted_unused_ = false;
};

/// What a strategy wraps: the live tensors of a model.
struct ModelTensors {
  NamedTensors parameters, buffers;
  /// Names of parameters in the order in which a backward pass gives them their gradients; those
  /// that are not there come behind, from the last.
  std::vector<std::string> gradient_order{};
};

/// The `parallel:` section of a recipe chooses one.
using StrategyRegistry = config::Registry<Strategy, Collectives&, const ModelTensors&>;

/// Every strategy that comes with Gallop.
StrategyRegistry built_in_strategies();

}  // namespace gallop::parallel
