#include "gallop/train/metrics/class_counts.h"

#include <algorithm>

#include <ATen/ops/cat.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include "gallop/data/text_samples.h"
#include "gallop/train/metrics/add_counts.h"
#include "gallop/train/metrics/predictions.h"
#include "gallop/train/metrics/state_bytes.h"

namespace gallop::train {

namespace {

struct Added {
  at::Tensor counts, totals;
};

Added of_classes(const Predictions& batch, int64_t classes) {
  const auto [logits, target] = class_rows(batch);
  const at::Tensor counted = target.ne(data::kIgnoredTarget);
  const at::Tensor none = at::full_like(target, classes);
  const at::Tensor truth = at::where(counted, target, none);
  const at::Tensor guess = at::where(counted, logits.argmax(1), none);
  const at::Tensor is_right = truth.eq(guess).logical_and(counted);
  const at::Tensor hit = at::where(is_right, target, none);
  // A single scatter_add over one list, which is deterministic on every device.
  const int64_t columns = classes + 1;
  const at::Tensor all = at::cat({truth, guess.add(columns), hit.add(2 * columns)});
  const at::Tensor counts = at::zeros({3 * columns}, target.options());
  counts.scatter_add_(0, all, at::ones_like(all));
  return {.counts = counts.reshape({3, columns}),
          .totals = at::stack({counted.sum(), is_right.sum()})};
}

Added of_labels(const Predictions& batch, const MetricTask& task) {
  const LabelRows rows = label_rows(batch, task);
  const at::Tensor& truth = rows.truth;
  const at::Tensor guess = rows.logits.gt(0).logical_and(rows.counts);
  const at::Tensor hit = guess.logical_and(truth);
  // A binary target has two classes.
  const bool is_binary = task.target == MetricTask::Target::kBinary;
  const auto of_all = [&](const at::Tensor& yes, const at::Tensor& no) {
    const at::Tensor sums = yes.sum(0), rest = at::zeros({1}, sums.options());
    return is_binary ? at::cat({no.sum().reshape({1}), sums, rest}) : at::cat({sums, rest});
  };
  const auto none = [&](const at::Tensor& yes) {
    return rows.counts.logical_and(yes.logical_not());
  };
  const at::Tensor all = at::stack({of_all(truth, none(truth)), of_all(guess, none(guess)),
                                    of_all(hit, none(guess.logical_or(truth)))});
  const at::Tensor counted = rows.counts.any(1);
  const at::Tensor is_right = guess.eq(truth).all(1).logical_and(counted);
  return {.counts = all, .totals = at::stack({counted.sum(), is_right.sum()})};
}

}  // namespace

void ClassCounts::add(const Predictions& batch) {
  const Added added =
      task_.has_classes() ? of_classes(batch, task_.classes) : of_labels(batch, task_);
  add_counts(counts_, added.counts);
  add_counts(totals_, added.totals);
}

void ClassCounts::merge(const MetricState& other) {
  const auto& more = dynamic_cast<const ClassCounts&>(other);
  if (!more.counts_.defined()) return;
  add_counts(counts_, more.counts_);
  add_counts(totals_, more.totals_);
}

ClassCounts::Numbers ClassCounts::numbers() const {
  Numbers all;
  const auto classes = static_cast<size_t>(task_.classes);
  for (auto* list : {&all.truths, &all.predictions, &all.hits}) list->resize(classes);
  if (!counts_.defined()) return all;
  const at::Tensor counts = counts_.cpu().contiguous(), totals = totals_.cpu();
  const auto* from = counts.const_data_ptr<int64_t>();
  for (auto* list : {&all.truths, &all.predictions, &all.hits}) {
    std::copy_n(from, classes, list->begin());
    from += classes + 1;
  }
  all.samples = totals.const_data_ptr<int64_t>()[0];
  all.right = totals.const_data_ptr<int64_t>()[1];
  return all;
}

std::string ClassCounts::to_bytes() const {
  const Numbers all = numbers();
  BytesWriter writer;
  for (const auto* list : {&all.truths, &all.predictions, &all.hits}) writer.put(*list);
  writer.put(all.samples);
  writer.put(all.right);
  return writer.take();
}

void ClassCounts::from_bytes(const std::string& bytes) {
  BytesReader reader(bytes);
  counts_ = at::zeros({3, task_.classes + 1}, at::kLong);
  totals_ = at::zeros({2}, at::kLong);
  for (int64_t row = 0; row < 3; ++row) {
    std::vector<int64_t> list;
    reader.get(list);
    std::copy(list.begin(), list.end(), counts_[row].mutable_data_ptr<int64_t>());
  }
  reader.get(totals_.mutable_data_ptr<int64_t>()[0]);
  reader.get(totals_.mutable_data_ptr<int64_t>()[1]);
}

}  // namespace gallop::train
