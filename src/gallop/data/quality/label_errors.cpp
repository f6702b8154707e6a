#include "gallop/data/quality/label_errors.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "gallop/base/error.h"

namespace gallop::data {

namespace {

// A probability this far below a threshold still reaches it.
constexpr double kTolerance = 1e-6;
// A label that is predicted for no sample at all must not count for all of them.
constexpr double kLowestThreshold = 2e-6;

using Counts = std::vector<std::vector<int64_t>>;

std::vector<int64_t> count_labels(const LabeledPredictions& predictions) {
  std::vector<int64_t> counts(static_cast<size_t>(predictions.classes));
  for (const int64_t label : predictions.labels) ++counts[static_cast<size_t>(label)];
  return counts;
}

// The mean probability of each class over the samples with that label; none for empty classes.
std::vector<double> thresholds_of(const LabeledPredictions& predictions,
                                  const std::vector<int64_t>& counts) {
  std::vector<double> sums(counts.size());
  for (int64_t i = 0; i < predictions.size(); ++i) {
    const int64_t label = predictions.labels[static_cast<size_t>(i)];
    sums[static_cast<size_t>(label)] += double{predictions.row(i)[label]};
  }
  for (size_t k = 0; k < sums.size(); ++k) {
    sums[k] = counts[k] == 0 ? std::numeric_limits<double>::infinity()
                             : std::max(kLowestThreshold, sums[k] / static_cast<double>(counts[k]));
  }
  return sums;
}

// The class that a sample confidently belongs to; -1 if there is none.
int64_t confident_class(const LabeledPredictions& predictions, int64_t sample,
                        const std::vector<double>& thresholds) {
  const float* const row = predictions.row(sample);
  int64_t found = -1;
  for (int64_t k = 0; k < predictions.classes; ++k) {
    if (double{row[k]} < thresholds[static_cast<size_t>(k)] - kTolerance) continue;
    if (found >= 0) return predictions.predicted(sample);
    found = k;
  }
  return found;
}

// Rounds numbers so that they sum to `total`: those with the largest errors of rounding to nearest
// are moved; of equal errors the last one up, the first one down.
std::vector<int64_t> round_to_total(const std::vector<double>& numbers, int64_t total) {
  std::vector<int64_t> rounded;
  std::vector<size_t> order(numbers.size());
  for (const double number : numbers) rounded.push_back(std::llrint(number));
  int64_t missing = total - std::accumulate(rounded.begin(), rounded.end(), int64_t{0});
  const int64_t step = missing < 0 ? -1 : 1;
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return numbers[a] - static_cast<double>(rounded[a]) <
           numbers[b] - static_cast<double>(rounded[b]);
  });
  if (step > 0) std::reverse(order.begin(), order.end());
  for (const size_t i : order) {
    if (missing == 0) break;
    rounded[i] += step;
    missing -= step;
  }
  return rounded;
}

Counts joint_of(const LabeledPredictions& predictions, const std::vector<int64_t>& counts) {
  const auto thresholds = thresholds_of(predictions, counts);
  Counts joint(counts.size(), std::vector<int64_t>(counts.size()));
  for (int64_t i = 0; i < predictions.size(); ++i) {
    const int64_t truth = confident_class(predictions, i, thresholds);
    const int64_t label = predictions.labels[static_cast<size_t>(i)];
    if (truth >= 0) ++joint[static_cast<size_t>(label)][static_cast<size_t>(truth)];
  }
  // In proportion, so that all samples of a label are distributed.
  std::vector<std::vector<double>> calibrated(joint.size());
  double total = 0;
  for (size_t label = 0; label < joint.size(); ++label) {
    std::vector<int64_t>& row = joint[label];
    row[label] = std::max<int64_t>(1, row[label]);
    const auto sum = static_cast<double>(std::accumulate(row.begin(), row.end(), int64_t{0}));
    for (const int64_t count : row) {
      calibrated[label].push_back(static_cast<double>(count) / sum *
                                  static_cast<double>(counts[label]));
      total += calibrated[label].back();
    }
  }
  // `total` is the number of samples but for rounding. Dividing by it makes halves round as
  // cleanlab's do.
  const auto samples = static_cast<double>(predictions.size());
  for (size_t label = 0; label < joint.size(); ++label) {
    for (double& count : calibrated[label]) count = count / total * samples;
    joint[label] = round_to_total(calibrated[label], counts[label]);
  }
  return joint;
}

// Errors to take of each label and true class: as estimated, but each label keeps a sample.
Counts to_take(const Counts& joint) {
  Counts take = joint;
  for (size_t label = 0; label < take.size(); ++label) {
    std::vector<int64_t>& row = take[label];
    const int64_t lacking = std::max<int64_t>(0, 1 - row[label]);
    row[label] += lacking;
    if (lacking == 0) continue;
    const auto others = std::count_if(row.begin(), row.end(), [](int64_t n) { return n > 0; }) - 1;
    const double share =
        static_cast<double>(lacking) / static_cast<double>(std::max<int64_t>(1, others));
    for (size_t k = 0; k < row.size(); ++k) {
      if (k != label)
        row[k] = std::max<int64_t>(0, static_cast<int64_t>(static_cast<double>(row[k]) - share));
    }
  }
  return take;
}

// For each label and true class, as many samples as `take` says, those with the largest margin.
std::vector<char> pruned_by_noise_rate(const LabeledPredictions& predictions, const Counts& take) {
  std::vector<std::vector<int64_t>> of_label(take.size());
  for (int64_t i = 0; i < predictions.size(); ++i) {
    of_label[static_cast<size_t>(predictions.labels[static_cast<size_t>(i)])].push_back(i);
  }
  std::vector<char> is_taken(static_cast<size_t>(predictions.size()));
  for (size_t label = 0; label < take.size(); ++label) {
    if (of_label[label].size() < 2) continue;
    for (size_t truth = 0; truth < take.size(); ++truth) {
      if (truth == label || take[label][truth] == 0) continue;
      std::vector<int64_t> order = of_label[label];
      const auto margin = [&](int64_t i) {
        return predictions.row(i)[truth] - predictions.row(i)[label];
      };
      std::stable_sort(order.begin(), order.end(),
                       [&](int64_t a, int64_t b) { return margin(a) > margin(b); });
      for (int64_t i = 0; i < take[label][truth]; ++i) {
        is_taken[static_cast<size_t>(order[static_cast<size_t>(i)])] = 1;
      }
    }
  }
  return is_taken;
}

}  // namespace

int64_t LabeledPredictions::predicted(int64_t sample) const {
  return std::max_element(row(sample), row(sample) + classes) - row(sample);
}

double label_quality(const LabeledPredictions& predictions, int64_t sample, LabelQuality quality) {
  const float* const row = predictions.row(sample);
  const int64_t label = predictions.labels[static_cast<size_t>(sample)];
  if (quality == LabelQuality::kSelfConfidence) return double{row[label]};
  double other = 0;
  for (int64_t k = 0; k < predictions.classes; ++k) {
    if (k != label) other = std::max(other, double{row[k]});
  }
  return (1 + double{row[label]} - other) / 2;
}

LabelErrors find_label_errors(const LabeledPredictions& predictions, LabelQuality quality,
                              LabelFilter filter) {
  if (predictions.size() == 0 || predictions.classes < 2) {
    throw UsageError("label errors are found among samples of two or more classes");
  }
  const std::vector<int64_t> counts = count_labels(predictions);
  LabelErrors errors{.joint = joint_of(predictions, counts), .samples = {}};
  const bool is_pruned = filter == LabelFilter::kPruneByNoiseRate;
  const std::vector<char> is_taken =
      is_pruned ? pruned_by_noise_rate(predictions, to_take(errors.joint)) : std::vector<char>();
  std::vector<double> qualities;
  for (int64_t i = 0; i < predictions.size(); ++i) {
    const auto at = static_cast<size_t>(i);
    qualities.push_back(label_quality(predictions, i, quality));
    const bool is_as_predicted = predictions.predicted(i) == predictions.labels[at];
    if ((!is_pruned || is_taken[at] != 0) && !is_as_predicted) errors.samples.push_back(i);
  }
  std::stable_sort(errors.samples.begin(), errors.samples.end(), [&](int64_t a, int64_t b) {
    return qualities[static_cast<size_t>(a)] < qualities[static_cast<size_t>(b)];
  });
  return errors;
}

}  // namespace gallop::data
