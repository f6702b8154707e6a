#include "gallop/train/input_sizes.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_upsample_bilinear2d_aa.h>
#include <fmt/format.h>

#include "gallop/base/error.h"

namespace gallop::train {

namespace {

// A fraction of a size that is computed from counters may be just below it.
constexpr double kRounding = 1e-9;

int64_t unit_of(int64_t given, int64_t full) {
  constexpr int64_t kParts = 8;
  return given > 0 ? given : std::max<int64_t>(1, full / kParts);
}

// The multiple of a unit below a size, and at least one.
int64_t in_units(double size, int64_t unit, int64_t full) {
  const auto units = static_cast<int64_t>(std::floor(size / static_cast<double>(unit) + kRounding));
  return std::min(full, std::max<int64_t>(1, units) * unit);
}

void require_default(bool is_default, const std::string& option, const std::string& remedy) {
  if (is_default) return;
  throw UsageError(fmt::format("train.{} has no effect: set train.{}, or omit it", option, remedy));
}

}  // namespace

void check(const ProgressiveResizingConfig& config) {
  if (config.initial_scale < 1) return;
  const ProgressiveResizingConfig none;
  const std::string section = "progressive_resizing.", remedy = section + "initial_scale below 1";
  require_default(config.delay_fraction == none.delay_fraction, section + "delay_fraction", remedy);
  require_default(config.finetune_fraction == none.finetune_fraction, section + "finetune_fraction",
                  remedy);
  require_default(config.size_increment == none.size_increment, section + "size_increment", remedy);
}

void check(const SeqLengthWarmupConfig& config) {
  if (config.duration > 0) return;
  const SeqLengthWarmupConfig none;
  const std::string section = "seq_length_warmup.", remedy = section + "duration above 0";
  require_default(config.min_seq_length == none.min_seq_length, section + "min_seq_length", remedy);
  require_default(config.step_size == none.step_size, section + "step_size", remedy);
}

void check(const RampupBatchSizeConfig& config) {
  if (config.start > 0) return;
  const RampupBatchSizeConfig none;
  const std::string section = "rampup_batch_size.", remedy = section + "start above 0";
  require_default(config.increment == none.increment, section + "increment", remedy);
  require_default(config.duration == none.duration, section + "duration", remedy);
}

void visit(config::Visitor& visitor, ProgressiveResizingConfig& config) {
  visitor.field({.name = "initial_scale",
                 .help = "initial scale of the images; 1: full size throughout",
                 .min = 0,
                 .max = 1,
                 .above_min = true},
                config.initial_scale);
  visitor.field({.name = "delay_fraction",
                 .help = "fraction of the run with the initial scale",
                 .min = 0,
                 .max = 1},
                config.delay_fraction);
  visitor.field({.name = "finetune_fraction",
                 .help = "fraction of the run at its end, with the full size",
                 .min = 0,
                 .max = 1},
                config.finetune_fraction);
  visitor.field(
      {.name = "size_increment",
       .help = "sizes are multiples of this number of pixels; 0: an eighth of the full size",
       .min = 0,
       .max = 1 << 14},
      config.size_increment);
}

void visit(config::Visitor& visitor, SeqLengthWarmupConfig& config) {
  visitor.field({.name = "duration",
                 .help = "fraction of the run in which texts become longer; 0: none",
                 .min = 0,
                 .max = 1},
                config.duration);
  visitor.field({.name = "min_seq_length",
                 .help = "initial length of texts in tokens; 0: step_size",
                 .min = 0,
                 .max = 1 << 24},
                config.min_seq_length);
  visitor.field(
      {.name = "step_size",
       .help = "lengths are multiples of this number of tokens; 0: an eighth of data.context",
       .min = 0,
       .max = 1 << 24},
      config.step_size);
}

void visit(config::Visitor& visitor, RampupBatchSizeConfig& config) {
  visitor.field({.name = "start",
                 .help = "initial batch size; 0: data.batch_size throughout",
                 .min = 0,
                 .max = 1 << 24},
                config.start);
  visitor.field({.name = "increment",
                 .help = "increment between sizes; 0: each size is twice the previous one",
                 .min = 0,
                 .max = 1 << 24},
                config.increment);
  visitor.field({.name = "duration",
                 .help = "fraction of the run in which batches are smaller than data.batch_size",
                 .min = 0,
                 .max = 1,
                 .above_min = true},
                config.duration);
}

std::vector<int64_t> rampup_sizes(const RampupBatchSizeConfig& config, int64_t batch) {
  std::vector<int64_t> sizes;
  for (int64_t size = config.start;
       size > 0 && size<batch; size = config.increment> 0 ? size + config.increment : 2 * size) {
    sizes.push_back(size);
  }
  sizes.push_back(batch);
  return sizes;
}

int64_t side_at(const ProgressiveResizingConfig& config, int64_t full, double progress) {
  const double end = 1 - config.finetune_fraction;
  if (config.initial_scale == 1 || progress >= end - kRounding) return full;
  const double ramp = end - config.delay_fraction;
  const double part = ramp > 0 ? std::max(0.0, progress - config.delay_fraction) / ramp : 0;
  const double scale = config.initial_scale + (1 - config.initial_scale) * std::min(1.0, part);
  return in_units(scale * static_cast<double>(full), unit_of(config.size_increment, full), full);
}

int64_t tokens_at(const SeqLengthWarmupConfig& config, int64_t context, double progress) {
  if (progress >= config.duration - kRounding) return context;
  const int64_t unit = unit_of(config.step_size, context);
  const int64_t first = std::min(context, config.min_seq_length > 0 ? config.min_seq_length : unit);
  const double length = static_cast<double>(first) +
                        static_cast<double>(context - first) * progress / config.duration;
  return std::max(first, in_units(length, unit, context));
}

int64_t count_sizes(const ProgressiveResizingConfig& config, int64_t full) {
  if (config.initial_scale == 1) return 1;
  return (full - side_at(config, full, 0)) / unit_of(config.size_increment, full) + 2;
}

int64_t count_sizes(const SeqLengthWarmupConfig& config, int64_t context) {
  if (config.duration == 0) return 1;
  return (context - tokens_at(config, context, 0)) / unit_of(config.step_size, context) + 2;
}

void resize(const ProgressiveResizingConfig& config, double progress, data::Batch& batch) {
  if (config.initial_scale == 1 || batch.rows() == 0) return;
  at::Tensor& images = batch.tensors[batch.fields->input_index()];
  const int64_t height = side_at(config, images.size(2), progress);
  const int64_t width = side_at(config, images.size(3), progress);
  if (height == images.size(2) && width == images.size(3)) return;
  const at::NoGradGuard no_grad;
  const auto format = images.suggest_memory_format();
  images = at::_upsample_bilinear2d_aa(images, {height, width}, /*align_corners=*/false)
               .contiguous(format);
}

void truncate(const SeqLengthWarmupConfig& config, double progress, data::Batch& batch) {
  if (config.duration == 0) return;
  const int64_t context = batch.fields->input().shape.sizes.front();
  const int64_t most = tokens_at(config, context, progress);
  if (batch.input().size(1) <= most) return;
  for (size_t i = 0; i < batch.tensors.size(); ++i) {
    const auto& sizes = (*batch.fields)[i].shape.sizes;
    if (sizes.empty() || sizes.front() != context) continue;
    batch.tensors[i] = batch.tensors[i].narrow(1, 0, most).contiguous();
  }
}

}  // namespace gallop::train
