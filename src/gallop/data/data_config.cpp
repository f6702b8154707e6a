#include "gallop/data/data_config.h"

#include <algorithm>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/data/dataset.h"
#include "gallop/data/loader.h"
#include "gallop/data/normalize.h"
#include "gallop/data/split.h"

namespace gallop::data {

namespace {

// Upper limits, checked before anything is allocated.
constexpr double kMaxBatch = 1 << 24;
constexpr double kMaxImageSize = 1 << 14;

void visit_loading(config::Visitor& visitor, DataConfig& config) {
  visitor.field({.name = "batch_size",
                 .help = "samples per training step; auto: what find-batch suggests",
                 .min = 1,
                 .max = kMaxBatch,
                 .or_auto = true},
                config.batch_size);
  visitor.field({.name = "eval_batch",
                 .help = "samples per evaluation batch; 0: the same as batch_size",
                 .min = 0,
                 .max = kMaxBatch},
                config.eval_batch);
  visitor.field({.name = "threads",
                 .help = "loader threads; -1: one per core, 0: load in the training thread",
                 .min = -1,
                 .max = 1024},
                config.threads);
  visitor.field({.name = "prefetch", .help = "batches prefetched", .min = 1, .max = 1024},
                config.prefetch);
  visitor.field({.name = "shuffle", .help = "shuffle the training samples in every epoch"},
                config.shuffle);
  visitor.field({.name = "group_by_length",
                 .help = "group texts of similar length into training batches, to reduce padding"},
                config.group_by_length);
  visitor.field({.name = "max_tokens",
                 .help = "maximum number of tokens, with padding, of a training batch of texts of "
                         "similar length, instead of batch_size; 0: batch_size texts",
                 .min = 0,
                 .max = 1 << 30},
                config.max_tokens);
  visitor.field({.name = "packing",
                 .help = "pack several texts into a row of a training batch, without attention "
                         "between them, to reduce padding"},
                config.packing);
  visitor.section({.name = "sampling", .help = "how the training samples of an epoch are drawn"},
                  config.sampling);
  visitor.field({.name = "in_memory",
                 .help = "keep decoded images in memory; auto: up to a quarter of it",
                 .choices = {"auto", "yes", "no"}},
                config.in_memory);
  visitor.field(
      {.name = "on_error",
       .help = "stop at samples that cannot be read or have no valid label, or skip and count them",
       .choices = {"stop", "skip"}},
      config.on_error);
}

void visit_images(config::Visitor& visitor, DataConfig& config) {
  visitor.field({.name = "augment",
                 .help = "data augmentations of the training images, applied in this order"},
                config.augment);
  visitor.field({.name = "normalize",
                 .help = "mean and standard deviation to normalize by: those of the training data "
                         "or of ImageNet, or none",
                 .choices = {"data", "imagenet", "none"}},
                config.normalize);
  visitor.field({.name = "mean",
                 .help = "means to normalize by instead, one per channel, in [0, 1]",
                 .min = 0,
                 .max = 1},
                config.mean);
  visitor.field({.name = "std",
                 .help = "standard deviations to normalize by, one per channel",
                 .min = 0,
                 .above_min = true},
                config.deviation);
  visitor.field({.name = "image_size",
                 .help = "side length in pixels that images are resized to; 0: not resized",
                 .min = 0,
                 .max = kMaxImageSize},
                config.image_size);
  visitor.field({.name = "rectangular_validation",
                 .help = "evaluate on images that keep their aspect ratio, with a shorter side of "
                         "image_size pixels, instead of on their middle squares"},
                config.rectangular_validation);
  visitor.field({.name = "channels",
                 .help = "image channels: 1 for grayscale, 3 for RGB, 0: as in the images",
                 .min = 0,
                 .max = 3},
                config.channels);
  visitor.field({.name = "exif_orientation",
                 .help = "apply or ignore the EXIF orientation of images",
                 .choices = {"apply", "ignore"}},
                config.exif_orientation);
}

void visit_text(config::Visitor& visitor, DataConfig& config) {
  visitor.field({.name = "context", .help = "context length in tokens", .min = 1, .max = 1 << 24},
                config.context);
  visitor.field({.name = "eval_stride",
                 .help = "stride of evaluation windows in tokens; smaller gives each token more "
                         "context; 0: context",
                 .min = 0},
                config.eval_stride);
}

}  // namespace

DataConfig::DataConfig(const DataModuleRegistry& modules, const AugmentationRegistry& augmentations,
                       const BatchTransformRegistry& batch_transforms_)
    : module(modules, modules.members().front().name),
      augment(augmentations),
      batch_transforms(batch_transforms_) {}

void visit(config::Visitor& visitor, DataConfig& config) {
  visitor.field({.name = "name", .help = "data set or file format"}, config.module);
  visitor.field(
      {.name = "task",
       .help = "task, such as causal-lm or masked-lm for text; auto: that of the data set"},
      config.task);
  visitor.field({.name = "path", .help = "file or folder; empty: the default locations"},
                config.path);
  visitor.field({.name = "validation",
                 .help = "fraction of the training data held out for validation if the data have "
                         "no validation split",
                 .min = 0,
                 .max = 1,
                 .below_max = true},
                config.validation);
  visitor.field(
      {.name = "folds",
       .help = "number of folds of the training data for cross-validation; 0: no cross-validation",
       .min = 0,
       .max = 1 << 20},
      config.folds);
  visitor.field(
      {.name = "fold", .help = "index of the fold that is the validation split, from 0", .min = 0},
      config.fold);
  visitor.field({.name = "group",
                 .help = "samples that stay in one split: a column of a table; folder, for files "
                         "of one folder; or a regular expression in their names, such as "
                         "'patient(\\d+)'"},
                config.group);
  visitor.field({.name = "exclude",
                 .help = "samples to leave out of all splits: names such as train/cat/7.jpg, or "
                         ".txt files with a name in each line",
                 .or_item = true},
                config.exclude);
  visit_loading(visitor, config);
  visitor.field(
      {.name = "batch_transforms",
       .help = "transforms of whole training batches, applied on the device in this order"},
      config.batch_transforms);
  visit_images(visitor, config);
  visit_text(visitor, config);
}

Holdout holdout_of(const DataConfig& config, uint64_t seed) {
  Holdout holdout{.fraction = config.validation,
                  .seed = seed,
                  .folds = config.folds,
                  .fold = config.fold,
                  .group = config.group};
  check(holdout);
  return holdout;
}

int loader_threads(const DataConfig& config, int cores) {
  return config.threads < 0 ? std::max(1, cores) : static_cast<int>(config.threads);
}

int reader_threads(const DataConfig& config, int cores) {
  return std::max(1, loader_threads(config, cores));
}

LoaderConfig training_loader(const DataConfig& config, int cores) {
  return {.batch = config.batch_size,
          .threads = loader_threads(config, cores),
          .prefetch = static_cast<int>(config.prefetch),
          .shuffle = config.shuffle,
          .packs = config.packing};
}

LoaderConfig evaluation_loader(const DataConfig& config, int cores) {
  LoaderConfig loader = training_loader(config, cores);
  if (config.eval_batch > 0) loader.batch = config.eval_batch;
  loader.shuffle = false;
  loader.packs = false;
  return loader;
}

std::optional<Normalization> given_normalization(const DataConfig& config, size_t count,
                                                 const char* unit) {
  if (!config.mean.empty() || !config.deviation.empty()) {
    if (config.mean.size() != count || config.deviation.size() != count) {
      throw UsageError(fmt::format(
          "data.mean and data.std must have one number for each of the {} {}, not {} and {}", count,
          unit, config.mean.size(), config.deviation.size()));
    }
    return Normalization{config.mean, config.deviation};
  }
  if (config.normalize != "none") return std::nullopt;
  return Normalization{std::vector<double>(count, 0), std::vector<double>(count, 1)};
}

ReadContext read_context(const DataConfig& config, int cores) {
  return {.path = config.path,
          .skip_broken = config.on_error == "skip",
          .orient = config.exif_orientation == "apply",
          .threads = reader_threads(config, cores)};
}

}  // namespace gallop::data
