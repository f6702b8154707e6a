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

/// The last of every `every` consecutive blocks: of 5 blocks with 2, the second and the fourth.
std::vector<bool> every_block(int64_t blocks, int64_t every);

/// The maximum number of samples with which memory is measured.
inline constexpr int64_t kMeasuredRows = 16;

/// The inputs of choose_blocks().
struct RecomputeMeasure {
  NamedTensors batch;  ///< Samples to measure with, at least one; see TrainStep::start().
  precision::Precision precision = precision::Precision::kFp32;
  std::shared_ptr<const Loss> loss = cross_entropy_loss();
  int64_t rows = 0;         ///< Rows of a micro-batch.
  int64_t state_bytes = 0;  ///< Bytes of weights, buffers and optimizer state.
};

/// The blocks of a model to recompute, and the peak memory with them.
struct RecomputeChoice {
  std::vector<bool> blocks;
  int64_t bytes = 0;  ///< Predicted for a step that is not compiled.
};

/// Thrown if a step exceeds the memory limit even with every block recomputed.
class BlocksDoNotFit : public UsageError {
 public:
  using UsageError::UsageError;
};

/// Chooses the fewest blocks, those that save most memory first, with which a step takes at most
/// `most_bytes`. The peak memory is measured with steps of two small numbers of samples and
/// extrapolated to a micro-batch. Restores the statistics, drops the gradients, and makes the model
/// recompute the chosen blocks. Throws BlocksDoNotFit if recomputing all blocks is not enough.
RecomputeChoice choose_blocks(model::Model& model, const RecomputeMeasure& measure,
                              int64_t most_bytes);

}  // namespace gallop::train
