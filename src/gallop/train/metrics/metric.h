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

/// What the targets of a data set are, as far as metrics depend on it.
struct MetricTask {
  enum class Target {
    kClasses,  ///< One class: outputs [N, C] logits (or [N, C, ...]), targets [N] (or [N, ...]).
    kTokens,   ///< The next token: outputs [N, T, C] logits, targets [N, T].
    kBinary,   ///< Yes or no: outputs [N] or [N, 1] logits, targets [N] of 0 and 1.
    kLabels,   ///< Any number of labels: outputs [N, C] logits, targets [N, C] of 0 and 1.
    kNumbers,  ///< Numbers: outputs and targets [N] or [N, D].
    kPairs,    ///< Embeddings of pairs [N, 2, D]; of each, the second is the first's partner.
  };
  Target target = Target::kClasses;
  int64_t classes = 0;                     ///< C; 2 where targets are yes or no.
  std::vector<std::string> class_names{};  ///< May be empty.
  bool tokens_are_characters = false;      ///< Each token is one character.
  bool per_element = false;                ///< A target for each pixel or position of a sample.

  /// Whether each target is one of several classes, tokens included.
  bool has_classes() const { return target == Target::kClasses || target == Target::kTokens; }
  /// Whether outputs are no scores of classes or labels.
  bool has_numbers() const { return target == Target::kNumbers || target == Target::kPairs; }
};

/// What a model makes of a batch, and what it should have made of it. On any device. Targets that
/// are data::kIgnoredTarget do not count.
struct Predictions {
  at::Tensor outputs;
  at::Tensor target;
};

/// What a metric keeps of the predictions it has seen. The same predictions give the same bits,
/// however they are divided into batches and states, and in whatever order these are merged; but
/// for pairs, which are compared within their batch.
class MetricState {
 public:
  virtual ~MetricState() = default;
  virtual void add(const Predictions& batch) = 0;
  /// Adds what a state of the same kind has seen.
  virtual void merge(const MetricState& other) = 0;
  /// All of it as bytes, for other processes, and the inverse for a new state of the same kind.
  virtual std::string to_bytes() const = 0;
  virtual void from_bytes(const std::string& bytes) = 0;
};

/// A value by the name that it has in logs. Without a number where it is undefined.
struct MetricValue {
  std::string name;
  std::optional<double> value{};
  bool higher_is_better = true;
};

/// Numbers or figures that say how good predictions are.
class Metric {
 public:
  virtual ~Metric() = default;

  /// In logs, "f1" or "top3"; options that are not the default are part of it.
  virtual std::string name() const = 0;
  virtual bool higher_is_better() const { return true; }

  /// Metrics with the same key have states of the same kind, and share one.
  virtual std::string state_key() const = 0;
  virtual std::unique_ptr<MetricState> make_state() const = 0;

  /// One value by name(), or one for each class; none of a metric that has only figures. `state` is
  /// one of make_state().
  virtual std::vector<MetricValue> values(const MetricState& state) const = 0;
  /// Whether that is one value, by which evaluations can be compared.
  virtual bool is_single() const { return true; }

  /// What an evaluation report shows of `state`, which is one of make_state().
  virtual std::vector<FigureData> figures(const MetricState& state) const;
};

/// Metrics by name, for a task. They throw UsageError where they have no meaning for it.
using MetricRegistry = config::Registry<Metric, const MetricTask&>;

/// The metrics that come with Gallop.
MetricRegistry built_in_metrics();

/// "cat", or "class-3" where the class has no name.
std::string class_name(const MetricTask& task, size_t index);
/// All of them.
std::vector<std::string> class_names(const MetricTask& task);

/// Throws UsageError: `metric` needs targets of another kind than the task's. `needs`: "targets
/// that are numbers".
[[noreturn]] void refuse_task(const std::string& metric, const std::string& needs,
                              const MetricTask& task);

}  // namespace gallop::train
