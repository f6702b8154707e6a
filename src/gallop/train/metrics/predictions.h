#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/train/metrics/metric.h"

namespace gallop::train {

/// Class predictions as rows, on their device: logits [M, C] fp32, target [M] int64, which may
/// contain ignored targets.
struct ClassRows {
  at::Tensor logits, target;
};

/// For outputs [..., C] and targets [...], or outputs [N, C, ...] and targets [N, ...]. Throws
/// InternalError if sizes do not match.
ClassRows class_rows(const Predictions& batch);

/// Predictions of labels, or of binary targets (one column), on their device: logits [M, C] fp32,
/// truth and counts [M, C] bool. Where an element does not count, its truth is false.
struct LabelRows {
  at::Tensor logits, truth, counts;
};
LabelRows label_rows(const Predictions& batch, const MetricTask& task);

/// The rows of a batch in host memory: scores and targets, and for labels which ones count.
struct HostRows {
  int64_t rows = 0, columns = 0;
  std::vector<float> logits;    ///< [rows, columns]
  std::vector<int64_t> target;  ///< [rows], for classes.
  std::vector<uint8_t> truth;   ///< [rows, columns], for labels and binary targets.
  std::vector<uint8_t> counts;  ///< As truth.

  const float* row(int64_t i) const { return logits.data() + i * columns; }
};

/// For all tasks except numbers and pairs. Rows of ignored class targets are left out.
HostRows host_rows(const Predictions& batch, const MetricTask& task);

/// Predicted and actual numbers in host memory: value i belongs to column i % columns.
struct HostNumbers {
  int64_t columns = 1;
  at::Tensor outputs, target;  ///< Contiguous fp64 of the same number of elements.

  int64_t size() const { return target.numel(); }
  const double* predicted() const { return outputs.const_data_ptr<double>(); }
  const double* actual() const { return target.const_data_ptr<double>(); }
};

/// For the task of numbers. Throws InternalError if sizes do not match.
HostNumbers host_numbers(const Predictions& batch);

/// The probabilities of a row of logits: their softmax in fp64, rounded to fp32.
void probabilities_of(const float* logits, int64_t classes, std::vector<float>& probabilities);

/// 1 / (1 + e^-logit) in fp64.
double probability_of(float logit);

}  // namespace gallop::train
