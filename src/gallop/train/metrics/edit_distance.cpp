#include "gallop/train/metrics/edit_distance.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "gallop/base/error.h"
#include "gallop/data/samples.h"
#include "gallop/train/metrics/state_bytes.h"

namespace gallop::train {

namespace {

using Sequence = std::vector<int64_t>;

// The rows [N, T], each up to its first padding.
std::vector<Sequence> sequences_of(const at::Tensor& padded) {
  const at::Tensor host = padded.detach().cpu().to(at::kLong).contiguous();
  const int64_t length = host.size(1);
  std::vector<Sequence> rows;
  for (int64_t i = 0; i < host.size(0); ++i) {
    const auto* const begin = host.const_data_ptr<int64_t>() + i * length;
    rows.emplace_back(begin, std::find(begin, begin + length, data::kIgnoredTarget));
  }
  return rows;
}

// Calls `visit(target, predicted)` with the sequences of each sample.
template <typename Visit>
void for_each_sample(const Predictions& batch, const Visit& visit) {
  if (batch.outputs.dim() != 2 || batch.target.dim() != 2 ||
      batch.outputs.size(0) != batch.target.size(0)) {
    throw InternalError(fmt::format("outputs of {} are not the sequences of targets of {}",
                                    fmt::join(batch.outputs.sizes(), "x"),
                                    fmt::join(batch.target.sizes(), "x")));
  }
  const std::vector<Sequence> targets = sequences_of(batch.target);
  const std::vector<Sequence> predictions = sequences_of(batch.outputs);
  for (size_t i = 0; i < targets.size(); ++i) visit(targets[i], predictions[i]);
}

struct EditCounts final : public MetricState {
  int64_t errors = 0, targets = 0;   // Classes.
  int64_t samples = 0, correct = 0;  // Correct ones have no error.

  void add(const Predictions& batch) override {
    for_each_sample(batch, [&](const Sequence& target, const Sequence& predicted) {
      const std::vector<Edit> edits = align(target, predicted);
      const auto count = std::count_if(edits.begin(), edits.end(),
                                       [](const Edit& edit) { return edit.is_error(); });
      errors += count;
      targets += static_cast<int64_t>(target.size());
      samples += 1;
      if (count == 0) correct += 1;
    });
  }
  void merge(const MetricState& other) override {
    const auto& more = dynamic_cast<const EditCounts&>(other);
    errors += more.errors;
    targets += more.targets;
    samples += more.samples;
    correct += more.correct;
  }
  std::string to_bytes() const override {
    BytesWriter writer;
    for (const int64_t count : {errors, targets, samples, correct}) writer.put(count);
    return writer.take();
  }
  void from_bytes(const std::string& bytes) override {
    BytesReader reader(bytes);
    for (int64_t* const count : {&errors, &targets, &samples, &correct}) reader.get(*count);
  }
};

// A fraction of EditCounts.
class OfEdits final : public Metric {
 public:
  struct Fraction {
    int64_t part = 0, whole = 0;
  };

  OfEdits(std::string name, bool higher_is_better, Fraction (*fraction)(const EditCounts&))
      : name_(std::move(name)), higher_is_better_(higher_is_better), fraction_(fraction) {}

  std::string name() const override { return name_; }
  bool higher_is_better() const override { return higher_is_better_; }
  std::string state_key() const override { return "edits"; }
  std::unique_ptr<MetricState> make_state() const override {
    return std::make_unique<EditCounts>();
  }
  std::vector<MetricValue> values(const MetricState& state) const override {
    const auto [part, whole] = fraction_(dynamic_cast<const EditCounts&>(state));
    std::optional<double> value;
    if (whole > 0) value = static_cast<double>(part) / static_cast<double>(whole);
    return {{.name = name_, .value = value, .higher_is_better = higher_is_better_}};
  }

 private:
  std::string name_;
  bool higher_is_better_;
  Fraction (*fraction_)(const EditCounts&);
};

// How often targets of each class are aligned with each class, row-major.
class AlignedCounts final : public MetricState {
 public:
  explicit AlignedCounts(const MetricTask& task)
      : classes_(task.classes),
        blank_(task.blank),
        counts_(static_cast<size_t>(task.classes * task.classes)) {}

  void add(const Predictions& batch) override {
    const auto index_of = [this](int64_t class_index) {
      return class_index == data::kIgnoredTarget ? blank_ : class_index;
    };
    for_each_sample(batch, [&](const Sequence& target, const Sequence& predicted) {
      for (const Edit& edit : align(target, predicted)) {
        const int64_t cell = index_of(edit.target) * classes_ + index_of(edit.predicted);
        counts_.at(static_cast<size_t>(cell)) += 1;
      }
    });
  }
  void merge(const MetricState& other) override {
    const auto& more = dynamic_cast<const AlignedCounts&>(other).counts_;
    std::transform(counts_.begin(), counts_.end(), more.begin(), counts_.begin(), std::plus<>());
  }
  std::string to_bytes() const override {
    BytesWriter writer;
    writer.put(counts_);
    return writer.take();
  }
  void from_bytes(const std::string& bytes) override {
    BytesReader reader(bytes);
    reader.get(counts_);
  }

  ConfusionMatrix matrix(std::vector<std::string> names) const {
    ConfusionMatrix matrix{.classes = std::move(names), .counts = {}};
    for (auto row = counts_.begin(); row != counts_.end(); row += classes_) {
      matrix.counts.emplace_back(row, row + classes_);
    }
    return matrix;
  }

 private:
  int64_t classes_, blank_;
  std::vector<int64_t> counts_;
};

class AlignedConfusion final : public Metric {
 public:
  explicit AlignedConfusion(MetricTask task) : task_(std::move(task)) {}

  std::string name() const override { return "confusion-matrix"; }
  std::string state_key() const override { return "aligned-classes"; }
  std::unique_ptr<MetricState> make_state() const override {
    return std::make_unique<AlignedCounts>(task_);
  }
  std::vector<MetricValue> values(const MetricState& /*state*/) const override { return {}; }
  bool is_single() const override { return false; }
  std::vector<FigureData> figures(const MetricState& state) const override {
    return {{name(), dynamic_cast<const AlignedCounts&>(state).matrix(class_names(task_))}};
  }

 private:
  MetricTask task_;
};

void require_sequences(const char* metric, const MetricTask& task) {
  if (task.target == MetricTask::Target::kSequences) return;
  refuse_task(metric, "sequences of classes as targets", task);
}

}  // namespace

std::vector<Edit> align(const Sequence& target, const Sequence& predicted) {
  const size_t rows = target.size() + 1, columns = predicted.size() + 1;
  // The edit distance of each pair of prefixes.
  std::vector<size_t> distances(rows * columns);
  const auto at = [&](size_t i, size_t j) -> size_t& { return distances[i * columns + j]; };
  const auto substituted = [&](size_t i, size_t j) {
    return at(i - 1, j - 1) + (target[i - 1] == predicted[j - 1] ? 0 : 1);
  };
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) {
      if (i == 0 || j == 0) {
        at(i, j) = i + j;
      } else {
        at(i, j) = std::min({substituted(i, j), at(i - 1, j) + 1, at(i, j - 1) + 1});
      }
    }
  }
  std::vector<Edit> edits;
  for (size_t i = target.size(), j = predicted.size(); i > 0 || j > 0;) {
    if (i > 0 && j > 0 && at(i, j) == substituted(i, j)) {
      edits.push_back({.target = target[--i], .predicted = predicted[--j]});
    } else if (i > 0 && at(i, j) == at(i - 1, j) + 1) {
      edits.push_back({.target = target[--i], .predicted = data::kIgnoredTarget});
    } else {
      edits.push_back({.target = data::kIgnoredTarget, .predicted = predicted[--j]});
    }
  }
  std::reverse(edits.begin(), edits.end());
  return edits;
}

std::unique_ptr<Metric> make_label_error_rate(const NoMetricOptions& /*config*/,
                                              const MetricTask& task) {
  require_sequences("label-error-rate", task);
  return std::make_unique<OfEdits>("label-error-rate", /*higher_is_better=*/false,
                                   [](const EditCounts& counts) {
                                     return OfEdits::Fraction{counts.errors, counts.targets};
                                   });
}

std::unique_ptr<Metric> make_exact_match(const NoMetricOptions& /*config*/,
                                         const MetricTask& task) {
  require_sequences("exact-match", task);
  return std::make_unique<OfEdits>("exact-match", /*higher_is_better=*/true,
                                   [](const EditCounts& counts) {
                                     return OfEdits::Fraction{counts.correct, counts.samples};
                                   });
}

std::unique_ptr<Metric> make_aligned_confusion(const MetricTask& task) {
  require_sequences("confusion-matrix", task);
  return std::make_unique<AlignedConfusion>(task);
}

}  // namespace gallop::train
