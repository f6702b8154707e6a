#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gallop/parallel/collectives.h"
#include "gallop/train/loss.h"
#include "gallop/train/metrics/metric.h"

namespace gallop::train {

/// The metrics that a recipe chooses: `train.metric` and `train.metrics`.
struct MetricChoice {
  explicit MetricChoice(const config::Catalog& metrics)
      : deciding(metrics, "auto"), further(metrics) {}
  config::Component deciding;     ///< Decides which evaluation is the best.
  config::ComponentList further;  ///< Reported in addition.
};

/// The names of values in every evaluation, in addition to those of a MetricSet.
inline constexpr const char* kEvaluatedNames[] = {"loss", "accuracy", "top5"};

/// A metric of a run's evaluations, as far as it is known without the class names.
struct ReportedMetric {
  std::string name;  ///< With a value per class, the prefix of their names, such as "f1/".
  bool higher_is_better = true;
  bool is_single = true;
};
/// For targets of this kind; if not given, for any kind. Throws UsageError if a metric is not
/// defined for them.
std::vector<ReportedMetric> reported_metrics(const MetricRegistry& registry,
                                             const MetricChoice& choice,
                                             std::optional<MetricTask::Target> target = {});
/// The metric by which evaluations are compared; one of reported_metrics().
std::string deciding_metric(const MetricRegistry& registry, const MetricChoice& choice,
                            MetricTask::Target target);

using Metrics = std::vector<std::shared_ptr<const Metric>>;

/// The metrics of a run's evaluations.
class MetricSet {
 public:
  /// Throws UsageError if a metric is not defined for the task, or the deciding one is not a single
  /// number.
  MetricSet(const MetricRegistry& registry, const MetricChoice& choice, const MetricTask& task);

  const MetricTask& task() const { return task_; }
  const Metric& deciding() const { return *deciding_; }
  /// Metrics other than loss, accuracy and top5, which every evaluation has; no duplicates.
  const Metrics& reported() const { return reported_; }
  /// The names of single-number metrics, which schedules may follow: including the loss, and
  /// accuracy and top5 if targets are classes.
  std::vector<std::string> single_names() const;

 private:
  MetricTask task_;
  std::shared_ptr<const Metric> deciding_;
  Metrics reported_;
};

/// The states of several metrics during an evaluation.
class MetricSums {
 public:
  /// Computes the values of `reported` and the figures of `drawn`.
  MetricSums(Metrics reported, Metrics drawn);

  void add(const Predictions& batch);
  /// Merges the states of all processes into each. Must be called by all of them.
  void merge_all(parallel::Collectives& collectives);
  /// The values of the reported metrics, in order; `tally` is of the same predictions.
  std::vector<MetricValue> values(const Tally& tally) const;
  /// The figures of the drawn metrics, in order, without duplicate names.
  std::vector<FigureData> figures() const;

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const Metric> metric;  // Any metric with this key.
    std::unique_ptr<MetricState> state;
  };
  void add_states(const Metrics& metrics);
  const MetricState* state_of(const Metric& metric) const;

  Metrics reported_, drawn_;
  std::vector<Entry> states_;  // One per key.
};

}  // namespace gallop::train
