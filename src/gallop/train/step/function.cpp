#include "gallop/train/step/function.h"

#include <optional>
#include <vector>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include "gallop/model/functional/shared_batch_norm.h"
#include "gallop/parallel/collectives_group.h"
#include "gallop/train/losses/shapes.h"
#include "gallop/train/losses/shared_rows.h"
#include "gallop/train/step/sam.h"

namespace gallop::train {

StepFunction::StepFunction(model::Model& model, optim::Optimizer& optimizer,
                           const StepConfig& config, const StepSharing& sharing)
    : model_(model),
      optimizer_(optimizer),
      config_(config),
      sharing_(sharing),
      parameters_(model.parameters()),
      loss_(model, config),
      micro_batches_(config, sharing),
      update_(parameters_, optimizer, config, sharing),
      passes_(model, config, sharing, micro_batches_, loss_, update_.loss_scale()) {
  if (micro_batches_.gathers_rows()) {
    rows_group_ =
        std::make_unique<parallel::CollectivesGroup>(sharing.strategy().data_parallel_group());
  }
}

StepOutputs StepFunction::operator()(const StepInputs& inputs, bool count_correct) {
  std::optional<model::functional::SharedBatchNormScope> batch_norms;
  if (sharing_.shares_batch_norm()) {
    batch_norms.emplace([](const at::Tensor& tensor) {
      parallel::all_reduce_async(tensor);
      parallel::wait_tensor(tensor);
    });
  }
  std::optional<SharedRowsScope> rows;
  if (rows_group_) rows.emplace(*rows_group_, micro_batches_.whole_rows());

  const BatchCounts counts = count_targets(inputs);
  const BatchSums sums = passes_.run(inputs, counts, count_correct);
  update_statistics(sums, inputs);
  BatchSums perturbed;
  if (config_.sam) perturbed = run_perturbed(inputs, counts, sums);

  at::Tensor share, idle;
  if (loss_.counts_on_device()) {
    const at::NoGradGuard no_grad;
    idle = counts.targets.eq(0).to(at::kDouble);
  } else if (sums.shared.defined()) {
    share = sums.shared.select(0, kTargets).div(sums.shared.select(0, kAllTargets));
  }
  // Adds 0. The data dependency orders the update after all processes have done the last pass.
  if (perturbed.shared.defined()) {
    at::Tensor& last = share.defined() ? share : idle;
    last = last.add(perturbed.shared.select(0, kMissing));
  }
  if (share.defined()) idle = share.eq(0);
  const auto [gradient_norm, spike] = update_.run(inputs, sums.loss, share, idle);
  return {.loss_sum = sums.loss,
          .correct = sums.correct,
          .gradient_norm = gradient_norm,
          .spike = spike,
          .shared_sums = sums.shared,
          .target_count = counts.targets};
}

void StepFunction::compute_gradients(const StepInputs& inputs) {
  passes_.run(inputs, count_targets(inputs), /*count_correct=*/false);
}

// Must precede the forward pass, as the gradients of several terms are not separate after it.
// Counts of batch slices are added in a fixed order, whichever process has them.
BatchCounts StepFunction::count_targets(const StepInputs& inputs) const {
  if (!loss_.counts_on_device()) return {};
  const at::NoGradGuard no_grad;
  const int64_t slices = sharing_.batch_slices();
  at::Tensor all;
  if (slices > 0) {
    const auto nothing = at::zeros({loss_.counts()}, inputs.shared.options());
    std::vector<at::Tensor> of_slices(static_cast<size_t>(slices), nothing);
    for (const MicroBatch& micro_batch : micro_batches_.of(rows_of(inputs.batch))) {
      if (micro_batch.is_empty()) continue;
      of_slices[static_cast<size_t>(micro_batch.slice)] =
          loss_.count(slice_rows(inputs.batch, micro_batch.begin, micro_batch.end));
    }
    all = at::stack(of_slices);
  } else {
    all = loss_.count(inputs.batch);
  }
  if (sharing_.is_shared()) {
    const parallel::SubgroupScope group(sharing_.strategy().data_parallel_group());
    parallel::all_reduce_async(all);
    parallel::wait_tensor(all);
  }
  if (slices > 0) all = all.sum(0);
  return loss_.divisors(all);
}

// Replaces the gradients by those of perturbed weights.
BatchSums StepFunction::run_perturbed(const StepInputs& inputs, const BatchCounts& counts,
                                      const BatchSums& first) {
  at::Tensor norm;
  {
    const at::NoGradGuard no_grad;
    norm = update_.updated().gradient_norm();
    // Adds 0. The data dependency orders the second pass, with its all-reduces, after the first.
    if (first.shared.defined()) {
      norm = norm.add(first.shared.select(0, kMissing).to(norm.scalar_type()));
    }
  }
  const SamPerturbation perturbation(parameters_, model_.buffers(), norm, *config_.sam);
  return passes_.run(inputs, counts, /*count_correct=*/false);
}

// After a pass that all processes have completed, on which the all-reduce depends by a 0.
void StepFunction::update_statistics(const BatchSums& sums, const StepInputs& inputs) {
  const int64_t size = model_.statistics_size();
  if (size == 0) return;
  const at::NoGradGuard no_grad;
  at::Tensor statistics = sums.statistics;
  if (sharing_.is_shared()) {
    if (!statistics.defined()) statistics = at::zeros({size}, inputs.shared.options());
    statistics = statistics.add(sums.shared.select(0, kMissing));
    parallel::all_reduce_async(statistics);
    parallel::wait_tensor(statistics);
  }
  model_.update_statistics(statistics);
}

// The offsets of batch slices, and the rows that processes gather, follow from the whole batch's
// rows, and gradients may be summed over all processes or not.
int64_t StepFunction::mode(bool count_correct) const {
  const int64_t gradients = sharing_.batch_slices() > 0 || micro_batches_.gathers_rows()
                                ? micro_batches_.whole_rows()
                            : sharing_.local_replicas() != nullptr ? 1
                                                                   : 0;
  return 2 * gradients + (count_correct ? 1 : 0);
}

NamedTensors StepFunction::tensors() const {
  NamedTensors all;
  const auto add = [&all](const NamedTensors& more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  for (const NamedTensors& some :
       {model_.parameters(), model_.buffers(), optimizer_.state(), update_.state()}) {
    add(some);
  }
  if (sharing_.is_shared()) add(sharing_.strategy().state());
  add(config_.loss->tensors());
  if (!config_.distill) return all;
  const model::Model& teacher = *config_.distill->teacher;
  for (const NamedTensors& some : {teacher.parameters(), teacher.buffers()}) {
    for (const auto& [name, tensor] : some) all.push_back({"teacher." + name, tensor});
  }
  return all;
}

}  // namespace gallop::train
