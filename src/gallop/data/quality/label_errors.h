#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gallop::data {

/// Predicted class probabilities of samples, [samples, classes], and their given labels. The
/// predictions of a sample must be those of a model that was not trained on it.
struct LabeledPredictions {
  int64_t classes = 0;
  std::vector<float> probabilities{};
  std::vector<int64_t> labels{};

  int64_t size() const { return static_cast<int64_t>(labels.size()); }
  const float* row(int64_t sample) const { return probabilities.data() + sample * classes; }
  /// The most likely class; the first of equal ones.
  int64_t predicted(int64_t sample) const;
};

/// By what label errors are ranked, lowest first.
enum class LabelQuality {
  kSelfConfidence,    ///< Probability of the given label.
  kNormalizedMargin,  ///< (1 + it - that of the most likely other class) / 2.
};

double label_quality(const LabeledPredictions& predictions, int64_t sample, LabelQuality quality);

/// Which samples are listed, after cleanlab's `filter_by`.
enum class LabelFilter {
  kPruneByNoiseRate,   ///< As many of each pair of classes as confident learning estimates.
  kPredictedNeqGiven,  ///< All whose label is not the most likely class.
};

/// Labels that are likely to be wrong.
struct LabelErrors {
  /// Estimated number of samples by given label and true label, [classes][classes]; rows sum to
  /// the number of samples of the given label.
  std::vector<std::vector<int64_t>> joint;
  std::vector<int64_t> samples;  ///< Most likely errors first.
};

/// Confident learning (Northcutt, Jiang and Chuang, "Confident learning: estimating uncertainty in
/// dataset labels", JAIR 2021). A sample counts for the true label
/// whose probability is at least the mean of that label's samples; among several, for the most
/// likely one. As many samples of label i as the counts estimate to be j, those with the largest
/// p(j) - p(i), are errors unless i is the most likely class; or `filter` selects them. Equal to
/// cleanlab's find_label_issues(). Throws UsageError without samples or with one class.
LabelErrors find_label_errors(const LabeledPredictions& predictions, LabelQuality quality,
                              LabelFilter filter = LabelFilter::kPruneByNoiseRate);

}  // namespace gallop::data
