// Metrics that follow from how often each class is true, predicted, and both.
#include <cmath>
#include <functional>
#include <numeric>

#include <fmt/format.h>

#include "gallop/train/metrics/class_counts.h"
#include "gallop/train/metrics/loss_metrics.h"

namespace gallop::train {

namespace {

using Target = MetricTask::Target;
using Numbers = ClassCounts::Numbers;

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0; }

class OfCounts : public Metric {
 public:
  explicit OfCounts(MetricTask task) : task_(std::move(task)) {}
  std::string state_key() const override { return "classes"; }
  std::unique_ptr<MetricState> make_state() const override {
    return std::make_unique<ClassCounts>(task_);
  }

 protected:
  static Numbers numbers_of(const MetricState& state) {
    return dynamic_cast<const ClassCounts&>(state).numbers();
  }
  MetricTask task_;
};

// A metric with one value, a function of the counts.
class ByFormula final : public OfCounts {
 public:
  using Formula = std::optional<double> (*)(const Numbers&);
  ByFormula(std::string name, Formula formula, const MetricTask& task)
      : OfCounts(task), name_(std::move(name)), formula_(formula) {}
  std::string name() const override { return name_; }
  std::vector<MetricValue> values(const MetricState& state) const override {
    return {{name_, formula_(numbers_of(state))}};
  }

 private:
  std::string name_;
  Formula formula_;
};

// A value per class, which is averaged over the classes.
struct ClassFormula {
  const char* name;
  const char* of_class;  ///< The name of the value of one class.
  double (*value)(double truths, double predictions, double hits);
};

class Averaged final : public OfCounts {
 public:
  Averaged(const ClassFormula& formula, std::string average, const MetricTask& task)
      : OfCounts(task), formula_(formula), average_(std::move(average)) {}

  std::string name() const override { return with_average(formula_.name, average_); }
  bool is_single() const override { return average_ != "per-class"; }

  std::vector<MetricValue> values(const MetricState& state) const override {
    const Numbers all = numbers_of(state);
    if (is_single()) return {{name(), average_of(all)}};
    std::vector<MetricValue> values;
    for (size_t i = 0; i < all.truths.size(); ++i) {
      values.push_back({value_of_class(formula_.name, task_, i), defined_value(all, i)});
    }
    return values;
  }

  std::vector<FigureData> figures(const MetricState& state) const override {
    const Numbers all = numbers_of(state);
    ClassBars bars{.metric = formula_.of_class, .classes = class_names(task_), .values = {}};
    for (size_t i = 0; i < all.truths.size(); ++i) bars.values.push_back(defined_value(all, i));
    return {{fmt::format("{}-by-class", formula_.name), std::move(bars)}};
  }

 private:
  // Classes count if they are true or predicted; labels always count.
  bool counts(const Numbers& all, size_t i) const {
    if (task_.target == Target::kLabels) return all.samples > 0;
    return all.truths[i] + all.predictions[i] > 0;
  }

  double value_of(const Numbers& all, size_t i) const {
    return formula_.value(static_cast<double>(all.truths[i]),
                          static_cast<double>(all.predictions[i]),
                          static_cast<double>(all.hits[i]));
  }

  std::optional<double> defined_value(const Numbers& all, size_t i) const {
    return counts(all, i) ? std::optional(value_of(all, i)) : std::nullopt;
  }

  std::optional<double> average_of(const Numbers& all) const {
    if (all.samples == 0) return std::nullopt;
    if (average_ == "micro") {
      const auto sum = [](const std::vector<int64_t>& list) {
        return static_cast<double>(std::accumulate(list.begin(), list.end(), int64_t{0}));
      };
      return formula_.value(sum(all.truths), sum(all.predictions), sum(all.hits));
    }
    double plain = 0, weighted = 0, classes = 0, weights = 0;
    for (size_t i = 0; i < all.truths.size(); ++i) {
      if (!counts(all, i)) continue;
      const double value = value_of(all, i), weight = static_cast<double>(all.truths[i]);
      plain += value;
      classes += 1;
      weighted += weight * value;
      weights += weight;
    }
    return average_ == "macro" ? ratio(plain, classes) : ratio(weighted, weights);
  }

  ClassFormula formula_;
  std::string average_;
};

void require_classes(const char* metric, const MetricTask& task) {
  if (!task.has_scores()) refuse_task(metric, "classes or labels as targets", task);
}

void require_one_class(const char* metric, const MetricTask& task) {
  require_classes(metric, task);
  if (task.target == Target::kLabels) refuse_task(metric, "one class for each target", task);
}

std::unique_ptr<Metric> averaged(const ClassFormula& formula, const AverageConfig& config,
                                 const MetricTask& task) {
  require_classes(formula.name, task);
  return std::make_unique<Averaged>(formula, config.average, task);
}

double f1(double truths, double predictions, double hits) {
  return ratio(2 * hits, truths + predictions);
}

std::optional<double> accuracy(const Numbers& all) {
  if (all.samples == 0) return std::nullopt;
  return ratio(static_cast<double>(all.right), static_cast<double>(all.samples));
}

// The mean recall over the classes that have targets (Brodersen et al., 2010).
std::optional<double> balanced_accuracy(const Numbers& all) {
  double sum = 0, classes = 0;
  for (size_t i = 0; i < all.truths.size(); ++i) {
    if (all.truths[i] == 0) continue;
    sum += static_cast<double>(all.hits[i]) / static_cast<double>(all.truths[i]);
    classes += 1;
  }
  if (classes == 0) return std::nullopt;
  return sum / classes;
}

// Agreement beyond that of independent predictions (Cohen, "A coefficient of agreement for nominal
// scales", 1960). Undefined if all targets and all predictions have the same class.
std::optional<double> cohen_kappa(const Numbers& all) {
  if (all.samples == 0) return std::nullopt;
  long double hits = 0, expected = 0;
  const auto samples = static_cast<long double>(all.samples);
  for (size_t i = 0; i < all.truths.size(); ++i) {
    hits += static_cast<long double>(all.hits[i]);
    expected +=
        static_cast<long double>(all.truths[i]) * static_cast<long double>(all.predictions[i]);
  }
  const long double disagreements = samples * samples - expected;
  if (disagreements <= 0) return std::nullopt;
  return static_cast<double>((hits * samples - expected) / disagreements);
}

// For any number of classes (Gorodkin, 2004); 0 if all targets or all predictions have one class.
std::optional<double> mcc(const Numbers& all) {
  if (all.samples == 0) return std::nullopt;
  long double hits = 0, both = 0, truths = 0, predictions = 0;
  const auto samples = static_cast<long double>(all.samples);
  for (size_t i = 0; i < all.truths.size(); ++i) {
    const auto t = static_cast<long double>(all.truths[i]);
    const auto p = static_cast<long double>(all.predictions[i]);
    hits += static_cast<long double>(all.hits[i]);
    both += t * p;
    truths += t * t;
    predictions += p * p;
  }
  const long double product = (samples * samples - truths) * (samples * samples - predictions);
  if (product <= 0) return 0;
  return static_cast<double>((hits * samples - both) / std::sqrt(product));
}

}  // namespace

void visit(config::Visitor& visitor, AverageConfig& config) {
  visitor.field(
      {.name = "average",
       .help =
           "macro: mean over classes; weighted: mean weighted by class frequency; micro: computed "
           "from the counts of all classes together; per-class: a value for each class",
       .choices = {"macro", "micro", "weighted", "per-class"}},
      config.average);
}

void visit(config::Visitor& /*visitor*/, NoMetricOptions& /*config*/) {}

std::string value_of_class(const std::string& metric, const MetricTask& task, size_t index) {
  return fmt::format("{}/{}", metric, class_name(task, index));
}

std::string with_average(const std::string& metric, const std::string& average) {
  return average == "macro" ? metric : fmt::format("{}-{}", metric, average);
}

std::unique_ptr<Metric> make_accuracy(const NoMetricOptions& config, const MetricTask& task) {
  require_classes("accuracy", task);
  if (task.has_classes()) return make_top1(config, task);
  return std::make_unique<ByFormula>("accuracy", accuracy, task);
}

std::unique_ptr<Metric> make_balanced_accuracy(const NoMetricOptions&, const MetricTask& task) {
  require_one_class("balanced-accuracy", task);
  return std::make_unique<ByFormula>("balanced-accuracy", balanced_accuracy, task);
}

std::unique_ptr<Metric> make_mcc(const NoMetricOptions&, const MetricTask& task) {
  require_one_class("mcc", task);
  return std::make_unique<ByFormula>("mcc", mcc, task);
}

std::unique_ptr<Metric> make_cohen_kappa(const NoMetricOptions&, const MetricTask& task) {
  require_one_class("cohen-kappa", task);
  return std::make_unique<ByFormula>("cohen-kappa", cohen_kappa, task);
}

std::unique_ptr<Metric> make_precision(const AverageConfig& config, const MetricTask& task) {
  return averaged(
      {"precision", "precision",
       [](double, double predictions, double hits) { return ratio(hits, predictions); }},
      config, task);
}

std::unique_ptr<Metric> make_recall(const AverageConfig& config, const MetricTask& task) {
  return averaged(
      {"recall", "recall", [](double truths, double, double hits) { return ratio(hits, truths); }},
      config, task);
}

std::unique_ptr<Metric> make_f1(const AverageConfig& config, const MetricTask& task) {
  return averaged({"f1", "F1", f1}, config, task);
}

std::unique_ptr<Metric> make_dice(const AverageConfig& config, const MetricTask& task) {
  return averaged({"dice", "Dice coefficient", f1}, config, task);
}

std::unique_ptr<Metric> make_mean_iou(const AverageConfig& config, const MetricTask& task) {
  return averaged({"mean-iou", "IoU",
                   [](double truths, double predictions, double hits) {
                     return ratio(hits, truths + predictions - hits);
                   }},
                  config, task);
}

}  // namespace gallop::train
