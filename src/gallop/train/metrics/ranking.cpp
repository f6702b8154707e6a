#include "gallop/train/metrics/ranking.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "gallop/train/metrics/predictions.h"
#include "gallop/train/metrics/state_bytes.h"
#include "gallop/train/metrics/threshold_points.h"

namespace gallop::train {

namespace {

using Target = MetricTask::Target;
using Entry = ScoreCounts::Entry;
__extension__ using Wide = unsigned __int128;

constexpr size_t kLeastPending = 1024;

// If there are two classes, only the scores of the second one count.
bool scores_second_alone(const MetricTask& task) {
  return task.target == Target::kBinary || (task.target == Target::kClasses && task.classes == 2);
}
size_t first_class(const MetricTask& task) { return scores_second_alone(task) ? 1 : 0; }

constexpr uint32_t kSign = 0x80000000;

// An integer with the order of the scores; both zeros have the same key.
uint32_t key_of(float score) {
  const auto bits = std::bit_cast<uint32_t>(score == 0 ? 0.0F : score);
  return (bits & kSign) != 0 ? ~bits : bits | kSign;
}

// Merges into one sorted list with unique keys.
void sort_in(std::vector<Entry>& sorted, std::vector<Entry>& more) {
  const auto is_before = [](const Entry& a, const Entry& b) { return a.key < b.key; };
  std::sort(more.begin(), more.end(), is_before);
  const auto middle = static_cast<std::ptrdiff_t>(sorted.size());
  sorted.insert(sorted.end(), more.begin(), more.end());
  std::inplace_merge(sorted.begin(), sorted.begin() + middle, sorted.end(), is_before);
  size_t kept = 0;
  for (const Entry& one : sorted) {
    if (kept > 0 && sorted[kept - 1].key == one.key) {
      sorted[kept - 1].negatives += one.negatives;
      sorted[kept - 1].positives += one.positives;
    } else {
      sorted[kept++] = one;
    }
  }
  sorted.resize(kept);
  more = {};
}

struct Totals {
  uint64_t negatives = 0, positives = 0;
};

Totals totals_of(const std::vector<Entry>& entries) {
  Totals totals;
  for (const Entry& one : entries) {
    totals.negatives += one.negatives;
    totals.positives += one.positives;
  }
  return totals;
}

// The fraction of pairs in which the positive has the higher score; ties count half (Hanley and
// McNeil, 1982).
std::optional<double> roc_auc(const std::vector<Entry>& entries) {
  const auto [negatives, positives] = totals_of(entries);
  if (negatives == 0 || positives == 0) return std::nullopt;
  Wide twice = 0;
  uint64_t below = 0;
  for (const Entry& one : entries) {
    twice += Wide{one.positives} * (Wide{2} * below + one.negatives);
    below += one.negatives;
  }
  return static_cast<double>(
      static_cast<long double>(twice) /
      (2 * static_cast<long double>(negatives) * static_cast<long double>(positives)));
}

// The mean precision over all thresholds, weighted by the increase of the recall.
std::optional<double> average_precision(const std::vector<Entry>& entries) {
  const auto [negatives, positives] = totals_of(entries);
  if (negatives + positives == 0) return std::nullopt;
  double sum = 0;
  uint64_t found = 0, taken = 0;
  for (size_t i = entries.size(); i-- > 0;) {
    found += entries[i].positives;
    taken += entries[i].positives + uint64_t{entries[i].negatives};
    sum += static_cast<double>(entries[i].positives) *
           (static_cast<double>(found) / static_cast<double>(taken));
  }
  return positives == 0 ? 0 : sum / static_cast<double>(positives);
}

struct Curve {
  const char* name;
  std::optional<double> (*area)(const std::vector<Entry>&);
  FigureData (*figure)(std::vector<ThresholdCurve> curves);
  void (*add_points)(const std::vector<Entry>&, ThresholdCurve& curve);
};

class OneVsRest final : public Metric {
 public:
  OneVsRest(const Curve& curve, std::string average, MetricTask task)
      : curve_(curve), average_(std::move(average)), task_(std::move(task)) {}

  std::string name() const override { return with_average(curve_.name, average_); }
  bool is_single() const override { return average_ != "per-class"; }
  std::string state_key() const override { return "scores"; }
  std::unique_ptr<MetricState> make_state() const override {
    return std::make_unique<ScoreCounts>(task_);
  }

  std::vector<MetricValue> values(const MetricState& state) const override {
    const auto& scores = dynamic_cast<const ScoreCounts&>(state);
    const auto columns = scores.entries();
    const std::vector<std::optional<double>> areas = areas_of(scores, columns);
    if (is_single()) return {{name(), average_of(columns, areas)}};
    std::vector<MetricValue> values;
    for (size_t i = 0; i < areas.size(); ++i) {
      values.push_back({value_of_class(curve_.name, task_, first_class(task_) + i), areas[i]});
    }
    return values;
  }

  std::vector<FigureData> figures(const MetricState& state) const override {
    const auto& scores = dynamic_cast<const ScoreCounts&>(state);
    const auto columns = scores.entries();
    const auto areas = areas_of(scores, columns);
    std::vector<ThresholdCurve> curves;
    for (size_t i = 0; i < columns.size(); ++i) {
      const auto [negatives, positives] = totals_of(columns[i]);
      curves.push_back({.class_name = class_name(task_, first_class(task_) + i),
                        .negatives = static_cast<int64_t>(negatives),
                        .positives = static_cast<int64_t>(positives),
                        .area = areas[i]});
      if (scores.are_numbers()) curve_.add_points(columns[i], curves.back());
    }
    return {curve_.figure(std::move(curves))};
  }

 private:
  std::vector<std::optional<double>> areas_of(
      const ScoreCounts& scores, const std::vector<std::vector<Entry>>& columns) const {
    std::vector<std::optional<double>> areas;
    for (const auto& entries : columns) {
      areas.push_back(scores.are_numbers() ? curve_.area(entries) : std::nullopt);
    }
    return areas;
  }

  // Undefined if the value of any class is.
  std::optional<double> average_of(const std::vector<std::vector<Entry>>& columns,
                                   const std::vector<std::optional<double>>& areas) const {
    if (areas.size() == 1) return areas.front();
    double sum = 0, weights = 0;
    for (size_t i = 0; i < areas.size(); ++i) {
      if (!areas[i]) return std::nullopt;
      const double weight =
          average_ == "weighted" ? static_cast<double>(totals_of(columns[i]).positives) : 1.0;
      sum += weight * *areas[i];
      weights += weight;
    }
    return weights > 0 ? sum / weights : 0;
  }

  Curve curve_;
  std::string average_;
  MetricTask task_;
};

std::unique_ptr<Metric> one_vs_rest(const Curve& curve, const OneVsRestConfig& config,
                                    const MetricTask& task) {
  if (task.target == Target::kTokens || !task.has_scores()) {
    refuse_task(curve.name, "classes or labels as targets", task);
  }
  return std::make_unique<OneVsRest>(curve, config.average, task);
}

}  // namespace

float ScoreCounts::Entry::score() const {
  return std::bit_cast<float>((key & kSign) != 0 ? key ^ kSign : ~key);
}

ScoreCounts::ScoreCounts(MetricTask task) : task_(std::move(task)) {
  columns_.resize(scores_second_alone(task_) ? 1 : static_cast<size_t>(task_.classes));
}

void ScoreCounts::note(size_t column, float score, bool is_positive) {
  if (std::isnan(score)) {
    nans_ += 1;
    return;
  }
  auto& [sorted, more] = columns_[column];
  more.push_back({.key = key_of(score),
                  .negatives = is_positive ? 0U : 1U,
                  .positives = is_positive ? 1U : 0U});
  if (more.size() > kLeastPending + sorted.size()) sort_in(sorted, more);
}

void ScoreCounts::add(const Predictions& batch) {
  const HostRows rows = host_rows(batch, task_);
  std::vector<float> probabilities;
  for (int64_t i = 0; i < rows.rows; ++i) {
    const float* const logits = rows.row(i);
    if (task_.target != Target::kClasses) {
      for (size_t k = 0; k < columns_.size(); ++k) {
        const size_t at = static_cast<size_t>(i * rows.columns) + k;
        if (rows.counts[at] != 0) note(k, logits[k], rows.truth[at] != 0);
      }
      continue;
    }
    probabilities_of(logits, rows.columns, probabilities);
    const auto truth = static_cast<size_t>(rows.target[static_cast<size_t>(i)]);
    const size_t first = first_class(task_);
    for (size_t k = 0; k < columns_.size(); ++k) {
      note(k, probabilities[first + k], truth == first + k);
    }
  }
}

void ScoreCounts::merge(const MetricState& other) {
  const auto& more = dynamic_cast<const ScoreCounts&>(other);
  const auto others = more.entries();
  for (size_t k = 0; k < columns_.size(); ++k) {
    auto& [sorted, pending] = columns_[k];
    pending.insert(pending.end(), others[k].begin(), others[k].end());
    sort_in(sorted, pending);
  }
  nans_ += more.nans_;
}

std::vector<std::vector<Entry>> ScoreCounts::entries() const {
  std::vector<std::vector<Entry>> all;
  for (Column column : columns_) {
    sort_in(column.sorted, column.more);
    all.push_back(std::move(column.sorted));
  }
  return all;
}

std::string ScoreCounts::to_bytes() const {
  BytesWriter writer;
  for (const auto& column : entries()) writer.put(column);
  writer.put(nans_);
  return writer.take();
}

void ScoreCounts::from_bytes(const std::string& bytes) {
  BytesReader reader(bytes);
  for (Column& column : columns_) {
    reader.get(column.sorted);
    column.more.clear();
  }
  reader.get(nans_);
}

void visit(config::Visitor& visitor, OneVsRestConfig& config) {
  visitor.field({.name = "average",
                 .help = "each class against the others; macro: mean over classes; weighted: mean "
                         "weighted by class frequency; per-class: a value for each class",
                 .choices = {"macro", "weighted", "per-class"}},
                config.average);
}

std::unique_ptr<Metric> make_roc_auc(const OneVsRestConfig& config, const MetricTask& task) {
  return one_vs_rest({"roc-auc", roc_auc,
                      [](std::vector<ThresholdCurve> curves) {
                        return FigureData{"roc-curve", RocCurves{std::move(curves)}};
                      },
                      add_roc_points},
                     config, task);
}

std::unique_ptr<Metric> make_average_precision(const OneVsRestConfig& config,
                                               const MetricTask& task) {
  return one_vs_rest(
      {"average-precision", average_precision,
       [](std::vector<ThresholdCurve> curves) {
         return FigureData{"precision-recall", PrecisionRecallCurves{std::move(curves)}};
       },
       add_precision_recall_points},
      config, task);
}

}  // namespace gallop::train
