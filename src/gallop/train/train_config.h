#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gallop/config/visitor.h"
#include "gallop/precision/grad_scaler.h"
#include "gallop/train/distillation.h"
#include "gallop/train/input_sizes.h"
#include "gallop/train/spike_watch.h"

namespace gallop::train {

/// An interval: a number of steps, epochs or seconds, or never.
struct Interval {
  enum class Unit { kNever, kSteps, kEpochs, kSeconds };
  Unit unit = Unit::kNever;
  double count = 0;

  /// "500 steps", "1 epoch", "90 s", "10 min", "2 h", "never". Throws UsageError.
  static Interval parse(const std::string& text);
};

/// When a run ends early because its metric no longer improves.
struct EarlyStoppingConfig {
  int64_t patience = 0;  ///< Evaluations without an improvement; 0 disables it.
  double min_change = 0;
  bool restore_best = false;
};

/// Activation checkpointing: which blocks of the model are recomputed in the backward pass instead
/// of saving their activations. At most one of the options may be set.
struct RecomputeConfig {
  int64_t every = 0;  ///< Recompute the last of this many consecutive blocks; 0: none.
  /// Recompute as few blocks as keep the memory of a step, with weights and optimizer state, below
  /// this size.
  std::string memory = "none";
};

/// The `train:` section of a recipe.
struct TrainConfig {
  double epochs = 1;
  std::optional<int64_t> steps;
  std::string device = "auto";
  std::string precision = "auto";
  precision::GradScalerConfig loss_scale;  ///< For fp16.
  std::string channels_last = "auto";
  std::string compile = "auto";
  std::string deterministic = "true";
  int64_t gradient_accumulation = 1;
  RecomputeConfig activation_checkpointing;
  std::vector<std::string> freeze;  ///< Patterns of the names of parameters; see model::freeze().
  std::optional<double> clip_grad_norm, clip_value, clip_adaptive;
  std::optional<double> sam;
  double label_smoothing = 0;
  DistillConfig distill;
  int64_t seed = 1;
  int64_t threads = 0;
  std::string evaluate_every = "1 epoch";
  EarlyStoppingConfig early_stopping;
  std::string checkpoint_every = "10 min";
  int64_t keep_checkpoints = 2;
  bool checkpoint_in_background = true;
  std::string checkpoint_slice = "64 MiB";
  std::string compare_every = "500 steps";
  ProgressiveResizingConfig progressive_resizing;
  SeqLengthWarmupConfig seq_length_warmup;
  RampupBatchSizeConfig rampup_batch_size;
  bool snapshots = false;
  std::string on_nonfinite = "stop";
  SpikeConfig spikes;
  bool prove = false;
};

void visit(config::Visitor& visitor, EarlyStoppingConfig& config);
void visit(config::Visitor& visitor, RecomputeConfig& config);
void visit(config::Visitor& visitor, TrainConfig& config);

/// Throws UsageError if options contradict each other.
void check(const TrainConfig& config);

/// Throws UsageError for early stopping if the data have no split to evaluate on.
void check_evaluations(const TrainConfig& config, bool evaluates);

}  // namespace gallop::train
