#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "gallop/parallel/model_averager.h"
#include "gallop/train/checkpoint.h"
#include "gallop/train/process_group.h"

// What checkpoints have of processes that train replicas (parallel::ModelAverager).
namespace gallop::train {

/// While it lives, the model has the mean of the replicas, if there are any.
class MeanOfReplicas {
 public:
  explicit MeanOfReplicas(parallel::ModelAverager* averager) : averager_(averager) {
    if (averager_ != nullptr) averager_->use_mean(true);
  }
  ~MeanOfReplicas() noexcept(false) {
    if (averager_ != nullptr) averager_->use_mean(false);
  }
  MeanOfReplicas(const MeanOfReplicas&) = delete;
  MeanOfReplicas& operator=(const MeanOfReplicas&) = delete;

 private:
  parallel::ModelAverager* averager_;
};

/// Adds this process's replica to a state that has the mean: parameters and buffers if they differ
/// among processes, the optimizer's state, and on rank 0 the outer optimizer's.
void write_replica(const ProcessGroup& group, const NamedTensors& optimizer, TrainingState& into);

/// Whether a state is that of replicas, each of which has its own optimizer's state; the same in
/// all processes.
bool has_replicas(const TrainingState& state);
/// Whether the state differs among processes, because of replicas or TrainingState::own.
bool has_own_states(const TrainingState& state);

/// Removes the entries about replicas, so that a run begins with their mean.
void forget_replicas(std::map<std::string, std::string>& trainer);

/// Restores replicas after the model, the optimizer's state and `saved.trainer` have been restored
/// in all processes; rank 0 has `saved.own`. Without replicas in the checkpoint, all begin with the
/// model. With another number of processes or another strategy, each takes the optimizer's state of
/// a saved process; throws UsageError in all processes if the saved replicas have different
/// weights. Returns a note for the user about such a change, or an empty text.
std::string read_replicas(const ProcessGroup& group, const NamedTensors& optimizer,
                          const TrainingState& saved, int64_t step);

}  // namespace gallop::train
