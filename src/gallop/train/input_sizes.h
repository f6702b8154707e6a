#pragma once

#include <cstdint>

#include "gallop/config/visitor.h"
#include "gallop/data/loader.h"

// Sizes of training inputs that grow along a run.
namespace gallop::train {

/// Small images first, as Composer's ProgressiveResizing: `initial_scale` of the size up to
/// `delay_fraction` of the run, then linearly larger, and the full size in its last
/// `finetune_fraction`.
struct ProgressiveResizingConfig {
  double initial_scale = 1;  ///< 1 disables it.
  double delay_fraction = 0.5;
  double finetune_fraction = 0.2;
  int64_t size_increment = 0;  ///< Sizes are multiples of it; 0: an eighth of the size.
};

/// Short texts first, as Composer's SeqLengthWarmup: linearly longer up to `duration` of the run.
struct SeqLengthWarmupConfig {
  double duration = 0;         ///< 0 disables it.
  int64_t min_seq_length = 0;  ///< 0: `step_size`.
  int64_t step_size = 0;       ///< Lengths are multiples of it; 0: an eighth of the context.
};

/// Small batches first, as Megatron-LM's `--rampup-batch-size`: each size has an equal part of
/// `duration`.
struct RampupBatchSizeConfig {
  int64_t start = 0;      ///< 0 disables it.
  int64_t increment = 0;  ///< 0: sizes double.
  double duration = 0.5;
};

void visit(config::Visitor& visitor, ProgressiveResizingConfig& config);
void visit(config::Visitor& visitor, SeqLengthWarmupConfig& config);
void visit(config::Visitor& visitor, RampupBatchSizeConfig& config);

/// Throws UsageError for options that have no effect, as the config disables what they belong to.
void check(const ProgressiveResizingConfig& config);
void check(const SeqLengthWarmupConfig& config);
void check(const RampupBatchSizeConfig& config);

/// The length of a side of images whose full length is `full`, at `progress` of the run.
int64_t side_at(const ProgressiveResizingConfig& config, int64_t full, double progress);
/// The maximum number of tokens of a row of at most `context`, at `progress` of the run.
int64_t tokens_at(const SeqLengthWarmupConfig& config, int64_t context, double progress);
/// The batch sizes of a run in ascending order, of which `batch` is the last.
std::vector<int64_t> rampup_sizes(const RampupBatchSizeConfig& config, int64_t batch);
/// An upper limit of the number of different sizes, for each of which a step is compiled.
int64_t count_sizes(const ProgressiveResizingConfig& config, int64_t full);
int64_t count_sizes(const SeqLengthWarmupConfig& config, int64_t context);

/// Resizes the images of a batch, bilinearly with antialiasing as torchvision does.
void resize(const ProgressiveResizingConfig& config, double progress, data::Batch& batch);
/// Cuts the rows of a batch of texts at the maximum number of tokens.
void truncate(const SeqLengthWarmupConfig& config, double progress, data::Batch& batch);

}  // namespace gallop::train
