#include "gallop/train/step/sharing.h"

#include <algorithm>

#include "gallop/parallel/model_averager.h"

namespace gallop::train {

std::unique_ptr<parallel::CollectivesScope> StepSharing::scope() const {
  if (!is_shared()) return nullptr;
  return std::make_unique<parallel::CollectivesScope>(strategy_->collectives());
}

int64_t StepSharing::batch_slices() const { return is_shared() ? strategy_->batch_slices() : 0; }

size_t StepSharing::losses() const {
  return static_cast<size_t>(std::max<int64_t>(1, batch_slices()));
}

int StepSharing::batch_part() const {
  return is_shared() ? strategy_->data_parallel_group().rank() : 0;
}

bool StepSharing::counts_here() const {
  parallel::Collectives* const group = is_shared() ? strategy_->model_parallel_group() : nullptr;
  return group == nullptr || group->rank() == 0;
}

bool StepSharing::shares_batch_norm() const {
  return is_shared() && strategy_->shares_batch_norm();
}

bool StepSharing::computes_empty_micro_batches() const {
  return is_shared() && (strategy_->shares_batch_norm() || strategy_->divides_forward_by_samples());
}

bool StepSharing::sums_each_micro_batch() const {
  return is_shared() && strategy_->sums_each_micro_batch();
}

const parallel::ModelAverager* StepSharing::local_replicas() const {
  const parallel::ModelAverager* const averager = is_shared() ? strategy_->averager() : nullptr;
  return averager != nullptr && averager->is_local_step() ? averager : nullptr;
}

bool StepSharing::divides_batch() const {
  return is_shared() && strategy_->data_parallel_group().size() > 1;
}

}  // namespace gallop::train
