#include "gallop/train/loss.h"

#include <algorithm>

#include <ATen/ops/arange.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/eq.h>
#include <ATen/ops/full.h>
#include <ATen/ops/gather.h>
#include <ATen/ops/gt.h>
#include <ATen/ops/isnan.h>
#include <ATen/ops/logical_and.h>
#include <ATen/ops/logical_not.h>
#include <ATen/ops/logical_or.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/ne.h>
#include <ATen/ops/scatter.h>
#include <ATen/ops/sub.h>
#include <ATen/ops/sum.h>
#include <ATen/ops/zeros.h>

#include "gallop/data/text_samples.h"
#include "gallop/model/functional/cross_entropy.h"

namespace gallop::train {

namespace {

at::Tensor as_rows(const at::Tensor& logits) { return logits.reshape({-1, logits.size(-1)}); }

struct Smoothed {
  at::Tensor shares;  // Target probabilities, fp32 [N, C].
  at::Tensor correct;
};

// Smooths class labels [..] or probabilities [.., C]; rows that do not count are 0.
Smoothed smoothed(const at::Tensor& logits, const at::Tensor& target,
                  const at::Tensor& label_smoothing, bool count_correct) {
  const at::Tensor even =
      at::full({}, 1.0 / static_cast<double>(logits.size(1)), logits.options().dtype(at::kFloat));
  if (target.is_floating_point()) {
    const at::Tensor rows = as_rows(target).to(at::kFloat);
    return {.shares = rows.add(even.sub(rows).mul(label_smoothing)), .correct = {}};
  }
  const at::Tensor wanted = target.reshape({-1, 1});
  const at::Tensor counts = wanted.ne(data::kIgnoredTarget).to(at::kFloat);
  const at::Tensor rows =
      at::zeros(logits.sizes(), even.options()).scatter(1, wanted.clamp_min(0), 1.0);
  Smoothed result{.shares = rows.add(even.sub(rows).mul(label_smoothing)).mul(counts),
                  .correct = {}};
  if (count_correct) result.correct = logits.argmax(1, /*keepdim=*/true).eq(wanted).sum();
  return result;
}

}  // namespace

at::Tensor cross_entropy_sum(const at::Tensor& logits, const at::Tensor& target,
                             double label_smoothing) {
  return cross_entropy_sum({.x = logits}, target, label_smoothing, /*count_correct=*/false).sum;
}

Losses cross_entropy_sum(const model::Output& output, const at::Tensor& target,
                         double label_smoothing, bool count_correct) {
  auto both = model::functional::cross_entropy(
      output, target,
      {.targets = {.ignored = data::kIgnoredTarget, .label_smoothing = label_smoothing},
       .count_correct = count_correct});
  return {.sum = both.loss, .correct = count_correct ? both.correct : at::Tensor()};
}

Losses cross_entropy_sum(const model::Output& output, const at::Tensor& target,
                         const at::Tensor& label_smoothing, bool count_correct) {
  const at::Tensor logits = as_rows(output.logits());
  const auto [shares, correct] = smoothed(logits.detach(), target, label_smoothing, count_correct);
  auto both = model::functional::cross_entropy(logits, shares, {});
  return {.sum = both.loss, .correct = correct};
}

int64_t count_targets(const at::Tensor& target) {
  return at::ne(target, data::kIgnoredTarget).sum().item<int64_t>();
}

void Tally::add(const Tally& other) {
  loss_sum += other.loss_sum;
  count += other.count;
  top1 += other.top1;
  top5 += other.top5;
}

Tally count_correct(const at::Tensor& logits, const at::Tensor& target, bool with_top5) {
  const at::Tensor rows = as_rows(logits);
  const at::Tensor wanted = target.reshape(-1);
  Tally tally;
  tally.count = count_targets(wanted);
  tally.top1 = at::eq(rows.argmax(1), wanted).sum().item<int64_t>();
  if (with_top5) tally.top5 = hits_among(rows, wanted, 5).sum().item<int64_t>();
  return tally;
}

at::Tensor hits_among(const at::Tensor& scores, const at::Tensor& target, int64_t k) {
  const at::Tensor truth = target.clamp_min(0).unsqueeze(1);
  const at::Tensor score = scores.gather(1, truth);
  const at::Tensor classes = at::arange(scores.size(1), target.options());
  const at::Tensor before =
      scores.gt(score).logical_or(scores.eq(score).logical_and(classes.gt(truth)));
  return before.sum(1)
      .lt(k)
      .logical_and(target.ne(data::kIgnoredTarget))
      .logical_and(score.squeeze(1).isnan().logical_not());
}

}  // namespace gallop::train
