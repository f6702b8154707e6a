#pragma once

#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/model/model.h"
#include "gallop/precision/precision.h"
#include "gallop/train/losses/loss.h"

namespace gallop::train {

/// Number format and memory order of a step.
struct StepFormat {
  precision::Precision precision = precision::Precision::kFp32;
  bool channels_last = false;

  /// "bf16, channels_last"
  std::string describe() const;
  bool operator==(const StepFormat&) const = default;
};

/// A format and what one forward and backward pass took in it.
struct FormatTiming {
  StepFormat format;
  double milliseconds = 0;
};

/// The formats that a recipe's `precision` and `channels_last` allow, "auto" meaning each that the
/// device has: fp32 first, as the others must earn their place.
std::vector<StepFormat> candidate_formats(const std::string& precision,
                                          const std::string& channels_last, bool images,
                                          at::Device device);

/// Times forward and backward in every format, fastest of three passes in turn after one to warm
/// up, and returns them in the order given. A format that is half as fast again as another is not
/// timed twice; where a batch takes long, as many of its rows are timed as take 30 ms, and the
/// times are scaled to all. Weights, statistics and gradients are as before afterwards; the model
/// is left in the first format's memory order.
std::vector<FormatTiming> time_formats(model::Model& model, const at::Tensor& input,
                                       const at::Tensor& target,
                                       const std::vector<StepFormat>& formats, const Loss& loss);

/// The fastest, where it is at least 5 % faster than those before it.
StepFormat pick_format(const std::vector<FormatTiming>& timings);

}  // namespace gallop::train
