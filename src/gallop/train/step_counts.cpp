// The counts by which a step divides losses.
#include <ATen/core/grad_mode.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>

#include "gallop/train/losses/shapes.h"
#include "gallop/train/pipeline_step.h"
#include "gallop/train/step_tensors.h"

namespace gallop::train {

// Several terms have separate counts, and so has a teacher if the loss counts something other than
// rows.
bool counts_by_size(const StepConfig& config, const std::vector<LossTerm>& terms) {
  const LossTraits traits = terms.front().loss->traits();
  return terms.size() == 1 && terms.front().weight == 1 && traits.counts_by_size &&
         !config.has_weights && (config.every_target_counts || !traits.can_ignore) &&
         (!config.distill || traits.counts_rows);
}

int64_t TrainStep::counts() const {
  return static_cast<int64_t>(terms_.size()) + (config_.distill ? 1 : 0) +
         (model_.has_auxiliary_loss() ? 1 : 0) + 1;
}

// The counts of some rows: of each term, of the teacher, of the model's own loss, and of targets
// that are not ignored.
at::Tensor TrainStep::counts_of(const NamedTensors& batch) const {
  const at::Tensor& target = batch[1].tensor;
  Tensors all;
  for (const LossTerm& term : terms_) all.push_back(term.loss->count(batch));
  const int64_t ignored = config_.loss->traits().ignored;
  if (config_.distill) all.push_back(distillation_count(target, ignored));
  if (model_.has_auxiliary_loss()) {
    all.push_back(count_tensor(batch[0].tensor.numel(), target));
  }
  all.push_back(
      target.is_floating_point()
          ? count_tensor(terms_.front().loss->expected_count(target, target.size(0)), target)
          : count_labels(target, ignored));
  return at::stack(all);
}

// Must run before the forward pass, as the gradients of several terms are not separate after it.
// Counts of batch slices are added in a fixed order, whichever process has them.
TrainStep::Counts TrainStep::count_targets_of_all(const StepInputs& inputs) {
  const at::NoGradGuard no_grad;
  at::Tensor all;
  if (batch_slices() > 0) {
    const auto nothing = at::zeros({counts()}, shared_.options());
    Tensors of_slices(static_cast<size_t>(batch_slices()), nothing);
    for (const Piece& piece : pieces_of(inputs.rows())) {
      if (piece.begin == piece.end) continue;
      of_slices[static_cast<size_t>(piece.slice)] =
          counts_of(slice_rows(inputs.batch, piece.begin, piece.end));
    }
    all = at::stack(of_slices);
  } else {
    all = counts_of(inputs.batch);
  }
  if (shared_.defined()) {
    const parallel::SubgroupScope group(config_.strategy->data_parallel_group());
    parallel::all_reduce_async(all);
    parallel::wait_tensor(all);
  }
  if (batch_slices() > 0) all = all.sum(0);
  const int64_t terms = counts() - 1;
  std::vector<double> weights;
  for (const LossTerm& term : terms_) {
    weights.push_back(term.weight * (config_.distill ? 1 - config_.distill->weight : 1));
  }
  if (config_.distill) weights.push_back(config_.distill->weight);
  if (model_.has_auxiliary_loss()) weights.push_back(1);
  // If the count is 0, the sum is 0, too.
  const at::Tensor of_terms = all.slice(0, 0, terms);
  Tensors factors;
  for (int64_t i = 0; i < terms; ++i) {
    const at::Tensor count = of_terms.select(0, i);
    factors.push_back(count.add(count.eq(0)).reciprocal().mul(weights[static_cast<size_t>(i)]));
  }
  return {.factors = at::stack(factors), .targets = all.select(0, terms)};
}

}  // namespace gallop::train
