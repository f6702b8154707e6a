#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/config/component.h"
#include "gallop/train/metrics/figure_data.h"

namespace gallop::train {

/// The properties of a data set's targets on which metrics depend.
struct MetricTask {
  enum class Target {
    kClasses,  ///< One class: outputs [N, C] logits (or [N, C, ...]), targets [N] (or [N, ...]).
    kTokens,   ///< The next token: outputs [N, T, C] logits, targets [N, T].
    kBinary,   ///< Binary: outputs [N] or [N, 1] logits, targets [N] of 0 and 1.
    kLabels,   ///< Any number of labels: outputs [N, C] logits, targets [N, C] of 0 and 1.
    kNumbers,  ///< Numbers: outputs and targets [N] or [N, D].
    kPairs,    ///< Embeddings of pairs [N, 2, D]; the target of the first is the second.
    /// Classes in order, without alignment: outputs are the decoded ones [N, T], targets [N, S];
    /// both int64 and padded by data::kIgnoredTarget.
    kSequences,
  };
  Target target = Target::kClasses;
  int64_t classes = 0;                     ///< C; 2 for binary targets.
  int64_t blank = 0;                       ///< A class that is no target, of sequences.
  std::vector<std::string> class_names{};  ///< May be empty.
  bool tokens_are_characters = false;      ///< Each token is one character.
  bool per_element = false;                ///< There is a target per pixel or position of a sample.
  /// Mean and standard deviation of each target that was standardized for training, with which
  /// metrics are computed in the original units.
  std::vector<double> target_mean{}, target_deviation{};

  /// Whether each target is one of several classes, tokens included.
  static bool are_classes(Target target) {
    return target == Target::kClasses || target == Target::kTokens;
  }
  bool has_classes() const { return are_classes(target); }
  /// Whether outputs are scores of classes or labels.
  bool has_scores() const { return has_classes() || is_binary(); }
  /// Whether each target is 0 or 1.
  bool is_binary() const { return target == Target::kBinary || target == Target::kLabels; }
};

/// A model's outputs for a batch and the batch's targets, on any device. Targets equal to
/// data::kIgnoredTarget do not count.
struct Predictions {
  at::Tensor outputs;
  at::Tensor target;
};

/// The state of a metric over predictions. The same predictions give the same bits, regardless of
/// how they are divided into batches and states and in what order these are merged.
class MetricState {
 public:
  virtual ~MetricState() = default;
  virtual void add(const Predictions& batch) = 0;
  /// Adds the predictions of another state of the same kind.
  virtual void merge(const MetricState& other) = 0;
  /// Serializes the state for other processes; from_bytes() restores it in a new state.
  virtual std::string to_bytes() const = 0;
  virtual void from_bytes(const std::string& bytes) = 0;
};

/// A value with its name in logs. Empty if it is undefined.
struct MetricValue {
  std::string name;
  std::optional<double> value{};
  bool higher_is_better = true;
};

/// Computes values or figures that measure the quality of predictions.
class Metric {
 public:
  virtual ~Metric() = default;

  /// The name in logs, such as "f1" or "top3", including options that are not the default.
  virtual std::string name() const = 0;
  virtual bool higher_is_better() const { return true; }

  /// Metrics with the same key have states of the same kind, and share one state.
  virtual std::string state_key() const = 0;
  virtual std::unique_ptr<MetricState> make_state() const = 0;

  /// One value named name(), or one per class; none for a metric that has only figures. `state`
  /// must be from make_state().
  virtual std::vector<MetricValue> values(const MetricState& state) const = 0;
  /// Whether values() returns one value, by which evaluations can be compared.
  virtual bool is_single() const { return true; }

  /// The figures of an evaluation report. `state` must be from make_state().
  virtual std::vector<FigureData> figures(const MetricState& state) const;
};

/// Metrics by name, for a task. Builders throw UsageError if a metric is not defined for it.
using MetricRegistry = config::Registry<Metric, const MetricTask&>;

/// The metrics that come with Gallop.
MetricRegistry built_in_metrics();

/// "cat", or "class-3" if the class has no name.
std::string class_name(const MetricTask& task, size_t index);
/// The names of all classes.
std::vector<std::string> class_names(const MetricTask& task);

/// Throws UsageError: `metric` needs targets of another kind than the task's. `needs` describes
/// them, such as "targets that are numbers".
[[noreturn]] void refuse_task(const std::string& metric, const std::string& needs,
                              const MetricTask& task);

}  // namespace gallop::train
