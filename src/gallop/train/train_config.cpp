#include "gallop/train/train_config.h"

#include <charconv>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/config/scalar.h"
#include "gallop/train/wrong_interval.h"

namespace gallop::train {

namespace {

struct UnitName {
  const char* name;
  Interval::Unit unit;
  double factor;
};

constexpr UnitName kUnits[] = {
    {"step", Interval::Unit::kSteps, 1},   {"steps", Interval::Unit::kSteps, 1},
    {"epoch", Interval::Unit::kEpochs, 1}, {"epochs", Interval::Unit::kEpochs, 1},
    {"s", Interval::Unit::kSeconds, 1},    {"min", Interval::Unit::kSeconds, 60},
    {"h", Interval::Unit::kSeconds, 3600},
};

}  // namespace

Interval Interval::parse(const std::string& text) {
  if (text == "never") return {};
  double count = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, count);
  if (error == std::errc() && count > 0 && std::isfinite(count)) {
    const std::string unit(stop != end && *stop == ' ' ? stop + 1 : stop, end);
    for (const auto& known : kUnits) {
      if (unit != known.name) continue;
      if (known.unit == Unit::kSteps && count != std::floor(count)) break;
      return {known.unit, count * known.factor};
    }
  }
  throw UsageError(
      fmt::format("'{}' is not an interval; write for example '500 steps', '1 epoch', '90 s', '10 "
                  "min', '2 h' or 'never'",
                  text));
}

namespace {

std::string wrong_interval(const std::string& text) {
  try {
    Interval::parse(text);
    return {};
  } catch (const UsageError& error) {
    return error.what();
  }
}

std::string wrong_memory(const std::string& text) {
  if (text == "none" || parse_bytes(text)) return {};
  return fmt::format(
      "'{}' is not an amount of memory; write for example '2 GiB', '512 MiB' or 'none'",
      printable(text));
}

}  // namespace

std::string wrong_interval_of_steps(const std::string& text) {
  if (std::string wrong = wrong_interval(text); !wrong.empty()) return wrong;
  if (Interval::parse(text).unit != Interval::Unit::kSeconds) return {};
  return "must be steps, epochs or 'never'";
}

// As for data.threads. With far more threads than cores, a step takes minutes.
constexpr double kMostThreads = 1024;

void visit(config::Visitor& v, RecomputeConfig& c) {
  v.field({.name = "every",
           .help = "recompute the activations of every n-th block in the backward pass; 1: all "
                   "blocks; 0: none",
           .min = 0},
          c.every);
  v.field({.name = "memory",
           .help = "recompute as few blocks as are needed to fit a step into this memory, such as "
                   "'2 GiB', weights included; or 'none'",
           .check = wrong_memory},
          c.memory);
}

void visit(config::Visitor& v, EarlyStoppingConfig& c) {
  v.field({.name = "patience",
           .help = "early stopping after this many evaluations without improvement; 0: off",
           .min = 0},
          c.patience);
  v.field({.name = "min_change", .help = "minimum improvement of the metric", .min = 0},
          c.min_change);
  v.field({.name = "restore_best",
           .help = "restore the best weights at the end of the run, also without early stopping"},
          c.restore_best);
}

// The options of a single step.
static void visit_step(config::Visitor& v, TrainConfig& c) {
  v.field({.name = "device",
           .help = "device; auto: a GPU if there is one",
           .choices = {"auto", "cpu", "cuda"}},
          c.device);
  v.field({.name = "precision",
           .help = "precision of GEMMs and convolutions; auto: the fastest by "
                   "measurement, except fp8 and bf16-weights; tf32 and fp8 need a GPU; "
                   "bf16-weights: bf16 with weights and gradients in bf16, too",
           .choices = {"auto", "fp32", "tf32", "bf16", "bf16-weights", "fp16", "fp8"}},
          c.precision);
  v.section({.name = "loss_scale", .help = ""}, c.loss_scale);
  v.field({.name = "channels_last",
           .help = "channels_last memory format of images; auto: the faster one by measurement",
           .choices = {"auto", "true", "false"}},
          c.channels_last);
  v.field({.name = "compile",
           .help = "compile the training step; auto: except for several processes on GPUs; verify: "
                   "also compare it with the eager step every 100 steps",
           .choices = {"auto", "true", "false", "verify"}},
          c.compile);
  v.field({.name = "deterministic",
           .help = "use deterministic operators on a GPU, so that results are repeatable bit for "
                   "bit; warn: use others where there is none; false: use the fastest",
           .choices = {"true", "warn", "false"}},
          c.deterministic);
  v.field({.name = "gradient_accumulation",
           .help = "gradient accumulation: micro-batches per batch, to save memory",
           .min = 1},
          c.gradient_accumulation);
  v.section({.name = "activation_checkpointing", .help = ""}, c.activation_checkpointing);
  v.field({.name = "freeze",
           .help = "glob patterns (*, ?) of the names of parameters that are not trained"},
          c.freeze);
  v.field({.name = "clip_grad_norm",
           .help = "maximum global norm of the gradients",
           .min = 0,
           .above_min = true},
          c.clip_grad_norm);
  v.field({.name = "clip_value",
           .help = "maximum absolute value of gradient elements",
           .min = 0,
           .above_min = true},
          c.clip_value);
  v.field(
      {.name = "clip_adaptive",
       .help =
           "adaptive gradient clipping: maximum ratio of a unit's gradient norm to its weight norm",
       .min = 0,
       .above_min = true},
      c.clip_adaptive);
  v.field({.name = "sam",
           .help = "sharpness-aware minimization (SAM): neighborhood size rho; often 0.05",
           .min = 0,
           .above_min = true},
          c.sam);
  v.field({.name = "label_smoothing",
           .help = "label smoothing: fraction of the target distributed over all classes",
           .min = 0,
           .max = 1,
           .below_max = true},
          c.label_smoothing);
  v.section({.name = "distill", .help = ""}, c.distill);
}

void visit(config::Visitor& v, TrainConfig& c) {
  v.field({.name = "epochs", .help = "passes over the training data", .min = 0, .above_min = true},
          c.epochs);
  v.field({.name = "steps", .help = "training steps (updates), instead of epochs", .min = 1},
          c.steps);
  visit_step(v, c);
  v.field({.name = "seed",
           .help = "seed of initial weights, sample order, augmentation and dropout",
           .min = 0},
          c.seed);
  v.field({.name = "threads",
           .help = "compute threads; 0: one per core, or as many as OMP_NUM_THREADS allows",
           .min = 0,
           .max = kMostThreads},
          c.threads);
  v.field({.name = "evaluate_every",
           .help = "evaluation interval: '500 steps', '1 epoch', '10 min' or 'never'; the end is "
                   "always evaluated",
           .check = wrong_interval},
          c.evaluate_every);
  v.section({.name = "early_stopping", .help = ""}, c.early_stopping);
  v.field({.name = "checkpoint_every",
           .help = "checkpoint interval: '500 steps', '1 epoch', '10 min' or 'never'",
           .check = wrong_interval},
          c.checkpoint_every);
  v.field({.name = "keep_checkpoints",
           .help = "number of most recent checkpoints to keep, besides the best",
           .min = 1},
          c.keep_checkpoints);
  v.field({.name = "checkpoint_in_background",
           .help = "write checkpoints asynchronously, from a copy of the state in memory"},
          c.checkpoint_in_background);
  v.field(
      {.name = "checkpoint_slice",
       .help = "each rank writes its own slice of a checkpoint if slices have at least this size",
       .check = config::wrong_bytes},
      c.checkpoint_slice);
  v.field({.name = "compare_every",
           .help = "interval at which ranks compare their weights and states bit by bit, besides "
                   "before evaluations and checkpoints: '500 steps', '1 epoch' or 'never'",
           .check = wrong_interval_of_steps},
          c.compare_every);
  v.field(
      {.name = "snapshots",
       .help =
           "keep the checkpoint at the end of each schedule cycle, too, for a snapshot ensemble"},
      c.snapshots);
  v.field(
      {.name = "on_nonfinite",
       .help =
           "reaction to a loss or gradient that is not finite: stop the run, or skip the update",
       .choices = {"stop", "skip"}},
      c.on_nonfinite);
  v.section({.name = "spikes", .help = ""}, c.spikes);
  v.section(
      {.name = "progressive_resizing", .help = "progressive resizing: train on small images first"},
      c.progressive_resizing);
  v.section(
      {.name = "seq_length_warmup", .help = "sequence length warm-up: train on short texts first"},
      c.seq_length_warmup);
  v.section(
      {.name = "rampup_batch_size", .help = "batch size ramp-up: train with small batches first"},
      c.rampup_batch_size);
  v.field({.name = "prove",
           .help = "before a new run, compare its first steps with a plain reference, as 'gallop "
                   "prove' does, and stop if they differ"},
          c.prove);
}

// Checks options that need more evaluations than one at the end.
static void require_evaluations(const EarlyStoppingConfig& config, const std::string& why,
                                const std::string& remedy) {
  const bool has_patience = config.patience > 0;
  if (!has_patience && !config.restore_best) return;
  throw UsageError(
      fmt::format("train.early_stopping.{} needs evaluations during the run, but {}; set {}, or {}",
                  has_patience ? fmt::format("patience={}", config.patience) : "restore_best=true",
                  why, remedy, has_patience ? "patience to 0" : "restore_best to false"));
}

static void check(const EarlyStoppingConfig& config, const std::string& evaluate_every) {
  if (config.patience == 0 && config.min_change != EarlyStoppingConfig().min_change) {
    throw UsageError(
        fmt::format("train.early_stopping.min_change={:g} is what patience counts by, and "
                    "train.early_stopping.patience is 0; give a patience, or leave min_change out",
                    config.min_change));
  }
  if (evaluate_every == "never") {
    require_evaluations(config, "train.evaluate_every is never",
                        "train.evaluate_every, for example to '1 epoch'");
  }
}

void check_evaluations(const TrainConfig& config, bool evaluates) {
  if (!evaluates) {
    require_evaluations(config.early_stopping, "the data have no split to evaluate on",
                        "data.validation, for example to 0.1");
  }
}

void check(const TrainConfig& config) {
  check(config.distill);
  check(config.spikes);
  check(config.early_stopping, config.evaluate_every);
  if (config.distill.weight == 1 && !config.distill.teacher.empty() && config.label_smoothing > 0) {
    throw UsageError(fmt::format(
        "train.label_smoothing={:g} changes the labels, and with train.distill.weight=1 the loss "
        "takes the teacher's alone; set label_smoothing to 0, or weight below 1",
        config.label_smoothing));
  }
  if (config.precision != "fp16" && config.loss_scale != precision::GradScalerConfig()) {
    throw UsageError(
        fmt::format("train.loss_scale is what fp16 needs, and train.precision is {}; set "
                    "train.precision=fp16, or leave train.loss_scale out",
                    config.precision));
  }
  const auto unit = Interval::parse(config.checkpoint_every).unit;
  if (config.spikes.action == "rewind" && unit != Interval::Unit::kSteps &&
      unit != Interval::Unit::kEpochs) {
    throw UsageError(fmt::format(
        "train.spikes.action=rewind goes back to the last checkpoint, and to the same one after a "
        "resume; give train.checkpoint_every in steps or epochs, not '{}'",
        config.checkpoint_every));
  }
  if (config.activation_checkpointing.every > 0 &&
      config.activation_checkpointing.memory != "none") {
    throw UsageError(
        "train.activation_checkpointing has every and memory: blocks are chosen in one way; set "
        "every to 0, or "
        "memory to none");
  }
  std::vector<std::string> clips;
  if (config.clip_grad_norm) clips.emplace_back("clip_grad_norm");
  if (config.clip_value) clips.emplace_back("clip_value");
  if (config.clip_adaptive) clips.emplace_back("clip_adaptive");
  if (clips.size() > 1) {
    throw UsageError(
        fmt::format("train has {}: gradients are clipped in one way; set the {} to none",
                    join_names(clips, "and"), clips.size() == 2 ? "other" : "others"));
  }
}

}  // namespace gallop::train
