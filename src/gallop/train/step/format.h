#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/model/model.h"
#include "gallop/precision/precision.h"
#include "gallop/train/losses/loss.h"
#include "gallop/train/measured_choice.h"

namespace gallop::train {

/// Number format and memory order of a step.
struct StepFormat {
  precision::Precision precision = precision::Precision::kFp32;
  bool channels_last = false;

  /// For example, "bf16, channels_last".
  std::string describe() const;
  bool operator==(const StepFormat&) const = default;
};

/// The formats that a recipe's `precision` and `channels_last` allow; "auto" allows each that the
/// device supports. fp32 comes first, so that others are chosen only if they are faster.
std::vector<StepFormat> candidate_formats(const std::string& precision,
                                          const std::string& channels_last, bool images,
                                          at::Device device);

/// A chosen format with the time of one forward and backward pass of the whole batch in each.
struct FormatChoice {
  StepFormat format;
  MeasuredChoice measured;  ///< For the number of rows that were timed.
  double scale = 1;         ///< Factor from these times to those of the whole batch.
};

/// Times forward and backward of a batch in every format, after two passes each to warm up, and
/// chooses as choose_by_measuring(): a later format must be at least 5 % faster. Precisions for
/// which the CPU has no instructions, so that a small GEMM takes several times as long as in fp32,
/// are excluded. If the batch is large, as many rows are timed as take 15 ms. `uses`: passes of the
/// whole batch for which the choice is made. Restores the statistics and drops the gradients;
/// leaves the model in the first format's memory order.
FormatChoice choose_format(model::Model& model, const NamedTensors& batch,
                           std::vector<StepFormat> formats, const Loss& loss, double uses);

}  // namespace gallop::train
