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
#include "gallop/train/losses/loss.h"
#include "gallop/train/metrics/metric_set.h"
#include "gallop/train/test_views.h"

namespace gallop::train {

struct EvaluateConfig {
  data::LoaderConfig loader;  ///< Order is that of the data, whatever `shuffle` says.
  precision::Precision precision = precision::Precision::kFp32;
  at::Device device = at::kCPU;
  TestViews views{};
  /// If set, each process evaluates its share of the batches, and has the sums of all.
  parallel::Collectives* collectives = nullptr;
  /// Sees each batch that this process evaluates and what all models together make of it: logits,
  /// or the logarithms of sums of probabilities. May be empty.
  std::function<void(const data::Batch&, const at::Tensor&)> see{};
  /// What is computed besides loss, accuracy and top5, and what decides which evaluation is the
  /// best: without it the accuracy, and the task is classification.
  std::shared_ptr<const MetricSet> metrics{};
  /// The loss that is reported; null: cross-entropy without label smoothing.
  std::shared_ptr<const Loss> loss{};
  /// Metrics whose figures are wanted, of all models together: report_metrics_for().
  Metrics drawn{};
};

/// Sum and count of a loss's term over some samples; the mean is their ratio.
struct TermSum {
  double sum = 0, count = 0;
};

struct Evaluation {
  Tally tally;                      ///< By the mean of the logits of all views.
  bool has_classes = true;          ///< Accuracy and top5 have a meaning.
  std::optional<Tally> one_view{};  ///< Of images as they are, where there are other views.
  int64_t skipped = 0;              ///< Broken samples left out.
  double seconds = 0;
  /// EvaluateConfig::metrics in their order, by the mean of all views.
  std::vector<MetricValue> metrics{};
  std::vector<TermSum> terms{};  ///< Of EvaluateConfig::loss, if set; the tally's loss follows.
  std::vector<FigureData> figures{};  ///< Of EvaluateConfig::drawn.

  /// A value by its name, loss, accuracy and top5 included; nothing where there is none or it is
  /// undefined.
  std::optional<double> value_of(const std::string& name) const;
};

/// Loss and right guesses over all samples, without gradients; sums and counts, so that the result
/// does not depend on the batch size. Empty where `stop` was requested before the end, in any
/// process. Leaves the model in training mode.
std::optional<Evaluation> evaluate(model::Model& model, const data::Samples& samples,
                                   const EvaluateConfig& config, const StopRequest& stop);

/// One of several models, and the format that it computes in.
struct Member {
  model::Model& model;
  precision::Precision precision = precision::Precision::kFp32;
};

struct EnsembleEvaluation {
  std::vector<Evaluation> each;  ///< Of the members; their `seconds` are not known.
  Evaluation ensemble;           ///< By the mean of their probabilities.
};

/// The same of several models that see each sample in turn; `config.precision` does not count.
std::optional<EnsembleEvaluation> evaluate_ensemble(const std::vector<Member>& members,
                                                    const data::Samples& samples,
                                                    const EvaluateConfig& config,
                                                    const StopRequest& stop);

}  // namespace gallop::train
