#include "gallop/train/metrics/confusion.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include <ATen/ops/arange.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>

#include "gallop/data/text_samples.h"
#include "gallop/train/metrics/add_counts.h"
#include "gallop/train/metrics/predictions.h"
#include "gallop/train/metrics/state_bytes.h"

namespace gallop::train {

namespace {

using Target = MetricTask::Target;

constexpr int64_t kCellsOfLabel = 4;

// The row-major index of each target's cell, for labels in a matrix of each; `none` if the target
// does not count.
at::Tensor cells_of(const Predictions& batch, const MetricTask& task, int64_t none) {
  const int64_t classes = task.classes;
  if (task.target == Target::kLabels) {
    const LabelRows rows = label_rows(batch, task);
    const at::Tensor labels = at::arange(classes, rows.truth.options().dtype(at::kLong));
    const at::Tensor cell =
        rows.truth.to(at::kLong).mul(2).add(rows.logits.gt(0)).add(labels.mul(kCellsOfLabel));
    return at::where(rows.counts, cell, at::full_like(cell, none)).reshape(-1);
  }
  if (task.target == Target::kBinary) {
    const LabelRows rows = label_rows(batch, task);
    const at::Tensor cell = rows.truth.to(at::kLong).mul(classes).add(rows.logits.gt(0));
    return at::where(rows.counts, cell, at::full_like(cell, none)).reshape(-1);
  }
  const auto [logits, target] = class_rows(batch);
  const at::Tensor cell = target.mul(classes).add(logits.argmax(1));
  return at::where(target.ne(data::kIgnoredTarget), cell, at::full_like(cell, none));
}

class OfConfusion final : public Metric {
 public:
  explicit OfConfusion(MetricTask task) : task_(std::move(task)) {}

  std::string name() const override { return "confusion-matrix"; }
  std::string state_key() const override { return name(); }
  std::unique_ptr<MetricState> make_state() const override {
    return std::make_unique<ConfusionCounts>(task_);
  }
  std::vector<MetricValue> values(const MetricState& /*state*/) const override { return {}; }
  bool is_single() const override { return false; }
  std::vector<FigureData> figures(const MetricState& state) const override {
    const auto& counts = dynamic_cast<const ConfusionCounts&>(state);
    if (task_.target == Target::kLabels) return {{"confusion-by-label", counts.of_labels()}};
    return {{name(), counts.matrix()}};
  }

 private:
  MetricTask task_;
};

}  // namespace

std::vector<std::vector<double>> ConfusionMatrix::shares() const {
  std::vector<std::vector<double>> all;
  for (const auto& row : counts) {
    const auto sum = static_cast<double>(std::accumulate(row.begin(), row.end(), int64_t{0}));
    auto& shares = all.emplace_back();
    for (const int64_t count : row) {
      shares.push_back(sum > 0 ? static_cast<double>(count) / sum
                               : std::numeric_limits<double>::quiet_NaN());
    }
  }
  return all;
}

int64_t ConfusionCounts::cells() const {
  return task_.target == Target::kLabels ? kCellsOfLabel * task_.classes
                                         : task_.classes * task_.classes;
}

void ConfusionCounts::add(const Predictions& batch) {
  const at::Tensor indices = cells_of(batch, task_, cells());
  const at::Tensor added = at::zeros({cells() + 1}, indices.options());
  added.scatter_add_(0, indices, at::ones_like(indices));
  add_counts(counts_, added);
}

void ConfusionCounts::merge(const MetricState& other) {
  const auto& more = dynamic_cast<const ConfusionCounts&>(other);
  if (!more.counts_.defined()) return;
  add_counts(counts_, more.counts_);
}

std::vector<int64_t> ConfusionCounts::counts() const {
  std::vector<int64_t> all(static_cast<size_t>(cells()));
  if (!counts_.defined()) return all;
  const at::Tensor counts = counts_.cpu();
  std::copy_n(counts.const_data_ptr<int64_t>(), all.size(), all.begin());
  return all;
}

std::string ConfusionCounts::to_bytes() const {
  BytesWriter writer;
  writer.put(counts());
  return writer.take();
}

void ConfusionCounts::from_bytes(const std::string& bytes) {
  BytesReader reader(bytes);
  std::vector<int64_t> all;
  reader.get(all);
  counts_ = at::zeros({cells() + 1}, at::kLong);
  std::copy(all.begin(), all.end(), counts_.mutable_data_ptr<int64_t>());
}

ConfusionMatrix ConfusionCounts::matrix() const {
  ConfusionMatrix matrix{.classes = class_names(task_), .counts = {}};
  const std::vector<int64_t> all = counts();
  const auto classes = static_cast<std::ptrdiff_t>(task_.classes);
  for (std::ptrdiff_t i = 0; i < classes; ++i) {
    matrix.counts.emplace_back(all.begin() + i * classes, all.begin() + (i + 1) * classes);
  }
  return matrix;
}

LabelConfusions ConfusionCounts::of_labels() const {
  LabelConfusions all;
  const std::vector<int64_t> found = counts();
  for (size_t i = 0; i < static_cast<size_t>(task_.classes); ++i) {
    const int64_t* const own = found.data() + i * kCellsOfLabel;
    all.labels.push_back({.name = class_name(task_, i),
                          .true_negatives = own[0],
                          .false_positives = own[1],
                          .false_negatives = own[2],
                          .true_positives = own[3]});
  }
  return all;
}

std::unique_ptr<Metric> make_confusion_matrix(const MetricTask& task) {
  if (!task.has_scores()) refuse_task("confusion-matrix", "classes or labels as targets", task);
  return std::make_unique<OfConfusion>(task);
}

}  // namespace gallop::train
