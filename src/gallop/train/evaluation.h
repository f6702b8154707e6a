#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gallop/train/loss.h"
#include "gallop/train/metrics/metric.h"

namespace gallop::train {

/// Sum and count of a loss term over some samples; the mean is their ratio.
struct TermSum {
  double sum = 0, count = 0;
};

struct Evaluation {
  Tally tally;                      ///< From the mean of the logits of all views.
  bool has_classes = true;          ///< Whether accuracy and top5 are defined.
  std::optional<Tally> one_view{};  ///< Of the original images, if there are other views.
  int64_t skipped = 0;              ///< Broken samples, which are left out.
  double seconds = 0;
  /// EvaluateConfig::metrics in their order, from the mean of all views.
  std::vector<MetricValue> metrics{};
  /// Sums of EvaluateConfig::loss, if set; they give the losses of `tally` and `one_view`.
  std::vector<TermSum> terms{}, one_view_terms{};
  std::vector<FigureData> figures{};  ///< Figures of EvaluateConfig::drawn.

  /// A value by name, including loss, accuracy and top5; std::nullopt if there is none or it is
  /// undefined.
  std::optional<double> value_of(const std::string& name) const;
};

}  // namespace gallop::train
