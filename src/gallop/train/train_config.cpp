#include "gallop/train/train_config.h"

#include <charconv>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/config/scalar.h"

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
      fmt::format("'{}' is no interval; write for example '500 steps', '1 epoch', '90 s', '10 "
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

// Of what all processes do at the same step.
std::string wrong_interval_of_steps(const std::string& text) {
  if (std::string wrong = wrong_interval(text); !wrong.empty()) return wrong;
  if (Interval::parse(text).unit != Interval::Unit::kSeconds) return {};
  return "must be steps, epochs or 'never'";
}

std::string wrong_memory(const std::string& text) {
  if (text == "none" || parse_bytes(text)) return {};
  return fmt::format("'{}' is no amount of memory; write for example '2 GiB', '512 MiB' or 'none'",
                     printable(text));
}

}  // namespace

// As of data.threads. Far more threads than cores take a step in minutes.
constexpr double kMostThreads = 1024;

void visit(config::Visitor& v, RecomputeConfig& c) {
  v.field({.name = "every",
           .help = "activation checkpointing: every so many blocks one is computed again in the "
                   "backward pass and its activations are not kept; 1: all; 0: none",
           .min = 0},
          c.every);
  v.field({.name = "memory",
           .help = "as few blocks are as let a step fit into '2 GiB', weights included; or 'none'",
           .check = wrong_memory},
          c.memory);
}

void visit(config::Visitor& v, EarlyStoppingConfig& c) {
  v.field({.name = "patience",
           .help = "evaluations in a row without a better metric that end the run; 0: none do",
           .min = 0},
          c.patience);
  v.field({.name = "min_change", .help = "by how much it must be better", .min = 0}, c.min_change);
  v.field({.name = "restore_best",
           .help = "end with the best weights in place of the last, also where the run was not "
                   "ended early"},
          c.restore_best);
}

// What one step is.
static void visit_step(config::Visitor& v, TrainConfig& c) {
  v.field({.name = "device",
           .help = "where to train; auto takes a GPU where there is one",
           .choices = {"auto", "cpu", "cuda"}},
          c.device);
  v.field(
      {.name = "precision",
       .help =
           "format of matrix products and convolutions; auto measures which is fastest, fp8 and "
           "bf16-weights left out; tf32 and fp8 are for GPUs; bf16-weights: bf16, in which weights "
           "and their gradients are kept as well",
       .choices = {"auto", "fp32", "tf32", "bf16", "bf16-weights", "fp16", "fp8"}},
      c.precision);
  v.section({.name = "loss_scale", .help = ""}, c.loss_scale);
  v.field({.name = "channels_last",
           .help = "memory order of images; auto measures which is faster",
           .choices = {"auto", "true", "false"}},
          c.channels_last);
  v.field(
      {.name = "compile",
       .help = "run a recorded step that passes have made faster; auto: but for several "
               "processes on GPUs; verify: also hold it against the step itself every 100 steps",
       .choices = {"auto", "true", "false", "verify"}},
      c.compile);
  v.field({.name = "accumulate",
           .help = "micro-batches that a batch is computed in, to save memory",
           .min = 1},
          c.accumulate);
  v.section({.name = "recompute", .help = ""}, c.recompute);
  v.field(
      {.name = "clip", .help = "largest global norm of the gradients", .min = 0, .above_min = true},
      c.clip);
  v.field(
      {.name = "clip_value", .help = "largest number in a gradient", .min = 0, .above_min = true},
      c.clip_value);
  v.field({.name = "clip_adaptive",
           .help = "largest norm of a unit's gradient, as a share of the norm of its weights",
           .min = 0,
           .above_min = true},
          c.clip_adaptive);
  v.field({.name = "sam",
           .help = "sharpness-aware minimization: how far from the weights, towards a higher loss, "
                   "gradients are taken; often 0.05",
           .min = 0,
           .above_min = true},
          c.sam);
  v.field({.name = "label_smoothing",
           .help = "share of the target that is spread over all classes",
           .min = 0,
           .max = 1,
           .below_max = true},
          c.label_smoothing);
  v.section({.name = "distill", .help = ""}, c.distill);
}

void visit(config::Visitor& v, TrainConfig& c) {
  v.field({.name = "epochs", .help = "passes over the training data", .min = 0, .above_min = true},
          c.epochs);
  v.field({.name = "steps", .help = "length of the run in updates, instead of epochs", .min = 1},
          c.steps);
  visit_step(v, c);
  v.field(
      {.name = "seed", .help = "decides initial weights, order, augmentation, dropout", .min = 0},
      c.seed);
  v.field({.name = "threads",
           .help = "threads that compute a step; 0 takes every core",
           .min = 0,
           .max = kMostThreads},
          c.threads);
  v.field({.name = "evaluate_every",
           .help = "'500 steps', '1 epoch', '10 min', 'never'; the end is always evaluated",
           .check = wrong_interval},
          c.evaluate_every);
  v.section({.name = "early_stopping", .help = ""}, c.early_stopping);
  v.field({.name = "checkpoint_every",
           .help = "the most that a crash can cost: '500 steps', '1 epoch', '10 min', 'never'",
           .check = wrong_interval},
          c.checkpoint_every);
  v.field(
      {.name = "keep_checkpoints", .help = "newest checkpoints kept, besides the best", .min = 1},
      c.keep_checkpoints);
  v.field({.name = "checkpoint_in_background",
           .help = "train on while a copy of the state is written, which takes as much memory once "
                   "more"},
          c.checkpoint_in_background);
  v.field({.name = "checkpoint_slice",
           .help = "of several processes each writes its part of a checkpoint, where parts are as "
                   "large as this at least",
           .check = config::wrong_bytes},
          c.checkpoint_slice);
  v.field(
      {.name = "compare_every",
       .help = "how often several processes hold the bits of their weights and states against "
               "each other, besides before evaluations and checkpoints: '500 steps', '1 epoch', "
               "'never'",
       .check = wrong_interval_of_steps},
      c.compare_every);
  v.field({.name = "snapshots",
           .help = "also keep the checkpoint at the end of each cycle of the schedule, for an "
                   "ensemble"},
          c.snapshots);
  v.field(
      {.name = "on_nonfinite",
       .help = "what a loss or gradient that is not finite does: end the run, or skip the update",
       .choices = {"stop", "skip"}},
      c.on_nonfinite);
  v.section({.name = "spikes", .help = ""}, c.spikes);
}

// Options that follow evaluations of which there is at most one, at the end.
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
    require_evaluations(config.early_stopping, "the data have no part to evaluate on",
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
  if (config.recompute.every > 0 && config.recompute.memory != "none") {
    throw UsageError(
        "train.recompute has every and memory: blocks are chosen in one way; set every to 0, or "
        "memory to none");
  }
  std::vector<std::string> clips;
  if (config.clip) clips.emplace_back("clip");
  if (config.clip_value) clips.emplace_back("clip_value");
  if (config.clip_adaptive) clips.emplace_back("clip_adaptive");
  if (clips.size() > 1) {
    throw UsageError(
        fmt::format("train has {}: gradients are clipped in one way; set the {} to none",
                    join_names(clips, "and"), clips.size() == 2 ? "other" : "others"));
  }
}

}  // namespace gallop::train
