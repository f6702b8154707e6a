#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "gallop/config/visitor.h"
#include "gallop/parallel/collectives.h"
#include "gallop/parallel/data_parallel.h"
#include "gallop/tensor/named_tensor.h"

namespace gallop::parallel {

/// When processes exchange what: steps are counted from 1 here.
struct AveragingSchedule {
  int64_t sync_every = 1;    ///< H, the steps between two synchronizations.
  int64_t warmup_steps = 0;  ///< First steps, whose gradients are summed as with ddp.
};

/// SGD on the difference between parameters at the last synchronization and their mean now.
struct OuterOptimizer {
  double lr = 0.7;
  double momentum = 0.9;
  bool nesterov = true;
};

/// Synchronizes the replicas of a model that processes train by themselves: their parameters become
/// the mean over all processes (local SGD, Stich, ICLR 2019), or those of an outer optimizer
/// (DiLoCo, Douillard et al., 2023). Buffers become their means. All processes call the same
/// functions.
class ModelAverager {
 public:
  /// `parameters`: those that are trained.
  ModelAverager(Collectives& collectives, NamedTensors parameters, NamedTensors buffers,
                const AveragingSchedule& schedule, const std::optional<OuterOptimizer>& outer);

  const AveragingSchedule& schedule() const { return schedule_; }
  int processes() const { return collectives_.size(); }

  /// Must be called before step `step`, counted from 0.
  void begin_step(int64_t step);
  /// Whether that step's gradients are those of this process, and not summed over all. They are
  /// the local sum divided by the number of targets of the whole batch, and so have to be
  /// multiplied by the number of processes.
  bool is_local_step() const { return is_local_; }
  /// Must be called after the update of that step. Synchronizes if it is time to.
  void end_step();

  /// Whether parameters and buffers are the same in all processes.
  bool are_equal() const { return are_equal_; }
  /// Whether processes have trained by themselves, so that states of their optimizers differ.
  bool has_trained_locally() const { return has_trained_locally_; }

  /// Makes parameters and buffers means over all processes until it is called with false. Calls may
  /// be nested.
  void use_mean(bool mean);
  /// What this process trains: copies while the model has means.
  NamedTensors replica() const;
  /// Parameters at the last synchronization, and the outer momentum, which are the same in all
  /// processes; empty without an outer optimizer.
  NamedTensors outer_state() const;
  /// Whether outer_state() has values, and is to be saved.
  bool has_outer_state() const { return has_start_; }

  /// Must be called when all processes have got the same parameters and buffers.
  void restart();
  /// Must be called after replica() and, if `outer`, outer_state() have been restored; `equal`: see
  /// are_equal().
  void restored(bool equal, bool outer);

 private:
  struct Group {
    size_t begin, end;  ///< Parameters.
    at::Tensor sent;
    std::vector<at::Tensor> places;
  };
  void start(Group& group, bool differences) const;
  void finish(Group& group, bool outer);
  void exchange(bool outer);

  Collectives& collectives_;
  NamedTensors parameters_, buffers_;
  AveragingSchedule schedule_;
  std::optional<OuterOptimizer> outer_;
  SharedStatistics statistics_;
  NamedTensors start_, momentum_;  // State of the outer optimizer.
  bool has_start_ = false;
  bool is_local_ = false, are_equal_ = true, has_trained_locally_ = false;
  int64_t step_ = 0;
  NamedTensors own_;  // Copies of this process's tensors while the model has means.
  int means_ = 0;     // Nested calls of use_mean(true).
};

}  // namespace gallop::parallel
