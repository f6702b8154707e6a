#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/base/error.h"
#include "gallop/model/model.h"
#include "gallop/precision/precision.h"
#include "gallop/train/losses/loss.h"

namespace gallop::train {

/// The last of every so many blocks: of 5 and 2, the second and the fourth.
std::vector<bool> every_block(int64_t blocks, int64_t every);

/// Samples of which memory is measured at most.
inline constexpr int64_t kMeasuredRows = 16;

/// What a choice rests on.
struct RecomputeMeasure {
  NamedTensors batch;  ///< Samples to measure with, at least one; see TrainStep::start().
  precision::Precision precision = precision::Precision::kFp32;
  std::shared_ptr<const Loss> loss = cross_entropy_loss();
  int64_t rows = 0;         ///< Of a micro-batch.
  int64_t state_bytes = 0;  ///< What is there besides: weights, buffers, the optimizer's state.
};

/// Blocks of a model that are to be recomputed, and what is there at most with them.
struct RecomputeChoice {
  std::vector<bool> blocks;
  int64_t bytes = 0;  ///< Predicted of a step that is not compiled.
};

/// Even with every block recomputed a step takes more than it may.
class BlocksDoNotFit : public UsageError {
 public:
  using UsageError::UsageError;
};

/// The fewest blocks, those that keep most before others, with which a step stays below so many
/// bytes. Steps of a few samples are measured, of two sizes, and what they take is drawn on to a
/// whole micro-batch. Statistics and gradients are as before afterwards, and the model recomputes
/// what was chosen. Throws BlocksDoNotFit where all are not enough.
RecomputeChoice choose_blocks(model::Model& model, const RecomputeMeasure& measure,
                              int64_t most_bytes);

}  // namespace gallop::train
