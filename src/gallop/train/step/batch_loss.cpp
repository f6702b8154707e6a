#include "gallop/train/step/batch_loss.h"

#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/stack.h>

#include "gallop/base/trace.h"
#include "gallop/train/losses/members.h"
#include "gallop/train/losses/shapes.h"

namespace gallop::train {

namespace {

// Several terms have separate counts, and so has a teacher if the loss counts something other than
// rows.
bool counts_by_size(const StepConfig& config, const std::vector<LossTerm>& terms) {
  const LossTraits traits = terms.front().loss->traits();
  return terms.size() == 1 && terms.front().weight == 1 && traits.counts_by_size &&
         !config.has_weights && (config.every_target_counts || !traits.can_ignore) &&
         (!config.distill || traits.counts_rows);
}

const at::Tensor& target_of(const NamedTensors& batch) { return field_of(batch, "target"); }

// The contribution of a term to the mean loss.
at::Tensor divided(const at::Tensor& sum, const at::Tensor& factors, size_t term) {
  return sum.mul(factors.select(0, static_cast<int64_t>(term)).to(sum.scalar_type()));
}

}  // namespace

BatchLoss::BatchLoss(const model::Model& model, const StepConfig& config)
    : config_(config),
      has_own_loss_(model.has_auxiliary_loss()),
      terms_(config.loss->terms()),
      counts_on_device_(!counts_by_size(config, terms_)) {}

bool BatchLoss::has_class_labels(const NamedTensors& batch) const {
  return config_.loss->traits().predicts_classes && !target_of(batch).is_floating_point();
}

int64_t BatchLoss::expected_count(const NamedTensors& batch, int64_t rows) const {
  return terms_.front().loss->expected_count(target_of(batch), rows);
}

int64_t BatchLoss::counts() const {
  return static_cast<int64_t>(terms_.size()) + (config_.distill ? 1 : 0) + (has_own_loss_ ? 1 : 0) +
         1;
}

at::Tensor BatchLoss::count(const NamedTensors& batch) const {
  const at::Tensor& target = target_of(batch);
  std::vector<at::Tensor> all;
  for (const LossTerm& term : terms_) all.push_back(term.loss->count(batch));
  const int64_t ignored = config_.loss->traits().ignored;
  if (config_.distill) all.push_back(distillation_count(target, ignored));
  if (has_own_loss_) all.push_back(count_tensor(batch.front().tensor.numel(), target));
  all.push_back(target.is_floating_point()
                    ? count_tensor(expected_count(batch, target.size(0)), target)
                    : count_labels(target, ignored));
  return at::stack(all);
}

BatchCounts BatchLoss::divisors(const at::Tensor& counts) const {
  std::vector<double> weights;
  for (const LossTerm& term : terms_) {
    weights.push_back(term.weight * (config_.distill ? 1 - config_.distill->weight : 1));
  }
  if (config_.distill) weights.push_back(config_.distill->weight);
  if (has_own_loss_) weights.push_back(1);
  const auto terms = static_cast<int64_t>(weights.size());
  const at::Tensor of_terms = counts.slice(0, 0, terms);
  std::vector<at::Tensor> factors;
  for (int64_t i = 0; i < terms; ++i) {
    // If the count is 0, the sum is 0, too.
    const at::Tensor count = of_terms.select(0, i);
    factors.push_back(count.add(count.eq(0)).reciprocal().mul(weights[static_cast<size_t>(i)]));
  }
  return {.factors = at::stack(factors), .targets = counts.select(0, terms)};
}

Losses BatchLoss::operator()(model::Output output, const NamedTensors& batch,
                             const BatchCounts& counts, const at::Tensor& label_smoothing,
                             bool count_correct) const {
  const TraceSpan span(SpanKind::kPhase, "loss");
  const at::Tensor own = own_loss_of_model(output, batch, counts);
  Losses losses;
  losses.step_statistics = output.step_statistics;
  // Several losses read the logits.
  if (config_.distill || terms_.size() > 1) {
    output = {.x = output.logits(), .loss = output.loss, .members = output.members};
  }
  for (size_t i = 0; i < terms_.size(); ++i) {
    Loss::Request request{.count_correct = count_correct && !losses.correct.defined()};
    if (terms_[i].loss->traits().takes_smoothing) request.label_smoothing = label_smoothing;
    const Losses of_term = losses_of(*terms_[i].loss, output, batch, request);
    if (of_term.correct.defined()) losses.correct = of_term.correct;
    const at::Tensor sum =
        counts_on_device_ ? divided(of_term.sum, counts.factors, i) : of_term.sum;
    losses.sum = sum_of(losses.sum, sum);
  }
  if (config_.distill) {
    const at::Tensor sum = distillation_of(output, batch);
    const double weight = config_.distill->weight;
    losses.sum = counts_on_device_ ? losses.sum.add(divided(sum, counts.factors, terms_.size()))
                                   : losses.sum.mul(1 - weight).add(sum, weight);
  }
  if (own.defined()) losses.sum = losses.sum.add(own);
  return losses;
}

// What the model's own loss contributes to a sum that is divided as that of the first term is. It
// is a mean over the elements of the input (tokens), however many of them are targets.
at::Tensor BatchLoss::own_loss_of_model(const model::Output& output, const NamedTensors& batch,
                                        const BatchCounts& counts) const {
  const at::Tensor& sum = output.auxiliary_loss;
  if (!sum.defined()) return {};
  if (counts_on_device_) {
    return divided(sum, counts.factors, static_cast<size_t>(counts.factors.size(0) - 1));
  }
  const int64_t tokens = batch.front().tensor.numel();
  const int64_t targets = expected_count(batch, rows_of(batch));
  if (targets == tokens) return sum;
  return sum.mul(static_cast<double>(targets) / static_cast<double>(tokens));
}

at::Tensor BatchLoss::distillation_of(const model::Output& output,
                                      const NamedTensors& batch) const {
  const auto& [teacher, temperature, weight] = *config_.distill;
  at::Tensor logits;
  {
    const at::NoGradGuard no_grad;
    // Without samples there is nothing to learn, and a teacher may not support it.
    logits = output.x.size(0) > 0 ? teacher->forward(batch) : output.x.detach();
  }
  return distillation_sum(output.x, logits, target_of(batch), temperature,
                          config_.loss->traits().ignored);
}

}  // namespace gallop::train
