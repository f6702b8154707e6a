#pragma once

#include <cstdint>
#include <optional>

#include "gallop/base/stop.h"
#include "gallop/data/loader.h"
#include "gallop/model/model.h"
#include "gallop/precision/precision.h"
#include "gallop/train/loss.h"

namespace gallop::train {

struct EvaluateConfig {
  data::LoaderConfig loader;  ///< Order is that of the data, whatever `shuffle` says.
  precision::Precision precision = precision::Precision::kFp32;
  at::Device device = at::kCPU;
};

struct Evaluation {
  Tally tally;
  int64_t skipped = 0;  ///< Broken samples left out.
  double seconds = 0;
};

/// Loss and right guesses over all samples, without gradients; sums and counts, so that the result
/// does not depend on the batch size. Empty where `stop` was requested before the end. Leaves
/// the model in training mode.
std::optional<Evaluation> evaluate(model::Model& model, const data::Samples& samples,
                                   const EvaluateConfig& config, const StopRequest& stop);

}  // namespace gallop::train
