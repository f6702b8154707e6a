#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gallop/parallel/collectives.h"
#include "gallop/train/loss.h"
#include "gallop/train/metrics/metric.h"

namespace gallop::train {

/// The metrics that a recipe asks for, `train.metric` and `train.metrics`.
struct MetricChoice {
  explicit MetricChoice(const config::Catalog& metrics)
      : deciding(metrics, "auto"), further(metrics) {}
  config::Component deciding;     ///< Decides which evaluation is the best.
  config::ComponentList further;  ///< Reported besides.
};

/// The names of every evaluation, besides those of a MetricSet.
inline constexpr const char* kEvaluatedNames[] = {"loss", "accuracy", "top5"};

/// What the evaluations of a run report, as far as it is known without the names of its classes.
struct ReportedMetric {
  std::string name;  ///< Of one with a value for each class: how their names begin, "f1/".
  bool higher_is_better = true;
  bool is_single = true;
};
/// For targets of this kind; without one for any kind. Throws UsageError where a metric has no
/// meaning for them.
std::vector<ReportedMetric> reported_metrics(const MetricRegistry& registry,
                                             const MetricChoice& choice,
                                             std::optional<MetricTask::Target> target = {});
/// By which evaluations of such targets are compared; one of reported_metrics().
std::string deciding_metric(const MetricRegistry& registry, const MetricChoice& choice,
                            MetricTask::Target target);

using Metrics = std::vector<std::shared_ptr<const Metric>>;

/// The metrics of a run's evaluations.
class MetricSet {
 public:
  /// Throws UsageError where one has no meaning for the task, or the deciding one is not a single
  /// number.
  MetricSet(const MetricRegistry& registry, const MetricChoice& choice, const MetricTask& task);

  const MetricTask& task() const { return task_; }
  const Metric& deciding() const { return *deciding_; }
  /// Those besides loss, accuracy and top5, which every evaluation has; each once.
  const Metrics& reported() const { return reported_; }
  /// All that are a single number, as schedules may follow them: the loss, and where targets are
  /// classes accuracy and top5, included.
  std::vector<std::string> single_names() const;

 private:
  MetricTask task_;
  std::shared_ptr<const Metric> deciding_;
  Metrics reported_;
};

/// The states of metrics.
class MetricSums {
 public:
  /// Of `reported` the values are wanted, of `drawn` the figures.
  MetricSums(Metrics reported, Metrics drawn);

  void add(const Predictions& batch);
  /// Merges what the states of all processes have seen, in all. Called by each of them.
  void merge_all(parallel::Collectives& collectives);
  /// Of those that are reported, in their order; `tally` is of the same predictions.
  std::vector<MetricValue> values(const Tally& tally) const;
  /// Of those that are drawn, in their order; each name once.
  std::vector<FigureData> figures() const;

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const Metric> metric;  // One of those with this key.
    std::unique_ptr<MetricState> state;
  };
  void add_states(const Metrics& metrics);
  const MetricState* state_of(const Metric& metric) const;

  Metrics reported_, drawn_;
  std::vector<Entry> states_;  // One for each key.
};

}  // namespace gallop::train
