#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace gallop::train {

/// How often targets of each class are predicted as each class.
struct ConfusionMatrix {
  std::vector<std::string> classes;
  std::vector<std::vector<int64_t>> counts;  ///< By true class, then predicted class.

  /// Counts divided by the sum of their row; NaN if a class has no targets.
  std::vector<std::vector<double>> shares() const;
};

/// How often each label is present and predicted: with a probability above 0.5.
struct LabelConfusions {
  struct Label {
    std::string name;
    int64_t true_negatives = 0, false_positives = 0, false_negatives = 0, true_positives = 0;
  };
  std::vector<Label> labels;
};

/// A curve over the thresholds of a score, of one class against all others.
struct ThresholdCurve {
  std::string class_name;
  int64_t negatives = 0, positives = 0;
  std::optional<double> area{};  ///< Over all thresholds; empty if undefined.
  /// From the highest threshold, infinity, to the lowest; empty if the curve is undefined. Points
  /// on a line between others are left out, and of several thousand points those that a drawing
  /// would not show.
  std::vector<double> x{}, y{}, thresholds{};
};

/// x is the false positive rate, y the true positive rate, the area the ROC-AUC.
struct RocCurves {
  std::vector<ThresholdCurve> curves;
};

/// x is the recall, y the precision, the area the average precision.
struct PrecisionRecallCurves {
  std::vector<ThresholdCurve> curves;
};

/// Accuracy by confidence (DeGroot and Fienberg, 1983; Guo et al., 2017).
struct ReliabilityDiagram {
  struct Bin {
    int64_t count = 0, correct = 0;
    double confidence = 0;  ///< Mean confidence; like accuracy, 0 in a bin without predictions.
    double accuracy = 0;
  };
  std::vector<Bin> bins;          ///< Bins of equal width, from a confidence of 0 to 1.
  std::optional<double> error{};  ///< The expected calibration error.
};

/// A metric of each class.
struct ClassBars {
  std::string metric;  ///< "IoU"
  std::vector<std::string> classes;
  std::vector<std::optional<double>> values;  ///< Empty where undefined.
};

/// Predicted against actual numbers, and their differences.
struct Residuals {
  struct Pair {
    double predicted = 0, actual = 0;
    int64_t count = 0;  ///< How often this pair occurs.
  };
  struct Column {
    int64_t count = 0;        ///< Number of all pairs of finite numbers.
    int64_t not_finite = 0;   ///< Number of pairs that are left out.
    std::vector<Pair> pairs;  ///< All of them, or a sample in random order.
    /// Histogram of actual - predicted over `pairs`, with bins of equal width and count + 1 edges.
    std::vector<double> edges;
    std::vector<int64_t> counts;
  };
  int64_t columns = 0;        ///< Columns of the targets.
  std::vector<Column> shown;  ///< The first columns.
};

/// The fraction of pairs whose second embedding is among the k most similar to the first one, of
/// all second ones; empty if an embedding is NaN.
struct RecallCurve {
  int64_t pairs = 0;
  std::vector<int64_t> k;  ///< 1, 2, 5, 10, ... up to the number of pairs.
  std::vector<double> recalls;
};

/// A histogram of the cosine similarities of first and second embeddings, of the same pair and of
/// different ones, with bins of equal width and count + 1 edges; empty if an embedding is NaN.
struct SimilarityHistogram {
  std::vector<double> edges;
  std::vector<int64_t> matching, others;
};

/// What a figure shows, computed from a metric's state.
struct FigureData {
  std::string name;  ///< File name: lower-case letters, digits and '-'.
  std::variant<ConfusionMatrix, RocCurves, PrecisionRecallCurves, ReliabilityDiagram, ClassBars,
               Residuals, LabelConfusions, RecallCurve, SimilarityHistogram>
      data;
};

}  // namespace gallop::train
