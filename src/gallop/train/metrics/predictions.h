#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/train/metrics/metric.h"

namespace gallop::train {

/// Predictions of classes as rows, on their device: logits [M, C] fp32, target [M] int64, of which
/// some may be ignored.
struct ClassRows {
  at::Tensor logits, target;
};

/// Of outputs [..., C] and targets [...], or of outputs [N, C, ...] and targets [N, ...]. Throws
/// InternalError where sizes do not fit.
ClassRows class_rows(const Predictions& batch);

/// Predictions of labels, or of yes or no (one column), on their device: logits [M, C] fp32, truth
/// and counts [M, C] bool; where an element does not count its truth is false.
struct LabelRows {
  at::Tensor logits, truth, counts;
};
LabelRows label_rows(const Predictions& batch, const MetricTask& task);

/// A row of a batch in memory: its scores and, for labels, which are true and which count.
struct HostRows {
  int64_t rows = 0, columns = 0;
  std::vector<float> logits;    ///< [rows, columns]
  std::vector<int64_t> target;  ///< [rows], of classes.
  std::vector<uint8_t> truth;   ///< [rows, columns], of labels and of yes or no.
  std::vector<uint8_t> counts;  ///< The same.

  const float* row(int64_t i) const { return logits.data() + i * columns; }
};

/// Of any task but numbers: rows of classes whose target is ignored are left out. Of pairs a row
/// for each: its scores are the cosine similarities of its first embedding with the second ones of
/// the batch, its target is its own place.
HostRows host_rows(const Predictions& batch, const MetricTask& task);

/// Numbers as they were predicted and as they are, in memory: value i is of column i % columns.
struct HostNumbers {
  int64_t columns = 1;
  at::Tensor outputs, target;  ///< Contiguous fp64 of the same number of elements.

  int64_t size() const { return target.numel(); }
  const double* predicted() const { return outputs.const_data_ptr<double>(); }
  const double* actual() const { return target.const_data_ptr<double>(); }
};

/// Of the task of numbers. Throws InternalError where sizes do not fit.
HostNumbers host_numbers(const Predictions& batch);

/// The probabilities of a row of logits: their softmax in fp64, rounded to fp32.
void probabilities_of(const float* logits, int64_t classes, std::vector<float>& probabilities);

/// 1 / (1 + e^-logit) in fp64.
double probability_of(float logit);

}  // namespace gallop::train
