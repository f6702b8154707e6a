#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gallop/config/component.h"
#include "gallop/data/augment.h"
#include "gallop/data/batch_transform.h"
#include "gallop/data/data_module.h"
#include "gallop/data/sampling.h"

namespace gallop::data {

struct Holdout;
struct LoaderConfig;
struct Normalization;
struct ReadContext;

/// The `data` section of the recipe.
struct DataConfig {
  /// The registries must outlive the config and its copies.
  DataConfig(const DataModuleRegistry& modules, const AugmentationRegistry& augmentations,
             const BatchTransformRegistry& batch_transforms);

  config::Component module;
  std::string task = "auto";  ///< What is learned; auto: the default task of the data set.
  std::string path;           ///< Empty: the default locations.
  int64_t batch_size = 128;
  int64_t eval_batch = 0;  ///< 0: same as `batch_size`.
  int64_t threads = -1;    ///< -1: one per core; 0: load in the training thread.
  int64_t prefetch = 4;
  SamplingConfig sampling;
  config::ComponentList augment;
  config::ComponentList batch_transforms;
  std::string normalize = "data";  ///< data, imagenet or none; `mean` and `deviation` override it.
  std::vector<double> mean;        ///< One per channel, on a scale where 1 is full brightness.
  std::vector<double> deviation;
  int64_t image_size = 0;               ///< 0: keep the images' size, which must be uniform.
  bool rectangular_validation = false;  ///< Evaluate on images of their own aspect ratios.
  int64_t channels = 0;                 ///< 1 or 3; 0: as in the images.
  int64_t context = 128;                ///< Maximum tokens in one input.
  int64_t eval_stride = 0;              ///< 0: `context`.
  double validation = 0;  ///< Fraction of the training data to split off if it is missing.
  int64_t folds = 0;      ///< Of cross-validation; 0: none.
  int64_t fold = 0;       ///< The one that is the validation split.
  std::string group;      ///< Holdout::group.
  /// Names of samples to leave out, or files of names; see data/exclusion.h.
  std::vector<std::string> exclude;
  std::string exif_orientation = "apply";  ///< apply or ignore.
  std::string in_memory = "auto";          ///< auto, yes or no.
  std::string on_error = "stop";           ///< stop or skip.
  bool shuffle = true;
  bool group_by_length = false;  ///< Batches of samples of similar length.
  bool packing = false;          ///< Several texts in a row of a training batch.
  int64_t max_tokens = 0;        ///< Of a training batch, with padding; 0: `batch_size` decides.
};

void visit(config::Visitor& visitor, DataConfig& config);

/// The validation split that the section asks for, with the seed of a run. Throws UsageError if its
/// options contradict each other.
Holdout holdout_of(const DataConfig& config, uint64_t seed);

/// The number of loader threads on a machine with `cores` cores.
int loader_threads(const DataConfig& config, int cores);
/// The number of threads that read data before training: those of the loader, but at least one.
int reader_threads(const DataConfig& config, int cores);

/// Loader settings for training, and for evaluation: in order, including the last incomplete
/// batch.
LoaderConfig training_loader(const DataConfig& config, int cores);
LoaderConfig evaluation_loader(const DataConfig& config, int cores);

/// The normalization of `count` channels or columns (`unit`) if it does not depend on the data:
/// `data.mean` with `data.std`, or none. Throws UsageError if their number is not `count`.
std::optional<Normalization> given_normalization(const DataConfig& config, size_t count,
                                                 const char* unit);

/// The settings from the section that readers need.
ReadContext read_context(const DataConfig& config, int cores);

}  // namespace gallop::data
