#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gallop/base/stop.h"
#include "gallop/data/loader.h"
#include "gallop/model/model.h"
#include "gallop/parallel/collectives.h"
#include "gallop/precision/precision.h"
#include "gallop/train/evaluation.h"
#include "gallop/train/losses/loss.h"
#include "gallop/train/metrics/metric_set.h"
#include "gallop/train/test_views.h"

namespace gallop::train {

struct EvaluateConfig {
  data::LoaderConfig loader;  ///< Batches are in the data's order; `shuffle` is ignored.
  precision::Precision precision = precision::Precision::kFp32;
  at::Device device = at::kCPU;
  TestViews views{};
  /// If set, each process evaluates its slice of the batches and receives the results of all.
  parallel::Collectives* collectives = nullptr;
  /// If set, these processes compute each forward pass together, as parts of one model: of the same
  /// batch, where `collectives` are one process of each such group, or each of its own batch.
  parallel::Collectives* forward_group = nullptr;
  bool divides_forward_by_samples = false;  ///< Whether each has its own.
  /// Called with each batch that this process evaluates and the outputs of all models together:
  /// logits, or the logarithms of sums of probabilities. May be empty.
  std::function<void(const data::Batch&, const at::Tensor&)> see{};
  /// Metrics in addition to loss, accuracy and top5, one of which decides which evaluation is the
  /// best. If null, the task is classification and the accuracy decides.
  std::shared_ptr<const MetricSet> metrics{};
  /// The loss that is reported; null: cross-entropy without label smoothing.
  std::shared_ptr<const Loss> loss{};
  /// Targets with this class label do not count, in addition to data::kIgnoredTarget.
  int64_t ignored = data::kIgnoredTarget;
  /// Metrics whose figures are computed, for all models together: report_metrics().
  Metrics drawn{};
};

/// Computes loss and metrics over all samples, without gradients. Results are sums and counts, so
/// that they do not depend on the batch size, unless the loss compares samples. Returns
/// std::nullopt if `stop` was requested before the end in any process. Leaves the model in training
/// mode.
std::optional<Evaluation> evaluate(model::Model& model, const data::Samples& samples,
                                   const EvaluateConfig& config, const StopRequest& stop);

/// A model of an ensemble, and the number format in which it computes.
struct Member {
  model::Model& model;
  precision::Precision precision = precision::Precision::kFp32;
};

struct EnsembleEvaluation {
  std::vector<Evaluation> each;  ///< Per member; their `seconds` are not set.
  Evaluation ensemble;           ///< From the mean of the members' probabilities.
};

/// As evaluate(), for an ensemble; `config.precision` is ignored.
std::optional<EnsembleEvaluation> evaluate_ensemble(const std::vector<Member>& members,
                                                    const data::Samples& samples,
                                                    const EvaluateConfig& config,
                                                    const StopRequest& stop);

}  // namespace gallop::train
