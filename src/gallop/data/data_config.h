#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gallop/config/component.h"
#include "gallop/config/visitor.h"
#include "gallop/data/augment.h"
#include "gallop/data/batch_transform.h"
#include "gallop/data/data_module.h"
#include "gallop/data/dataset.h"
#include "gallop/data/loader.h"
#include "gallop/data/normalize.h"

namespace gallop::data {

/// The recipe's section `data`.
struct DataConfig {
  /// The registries must outlive the config and its copies.
  DataConfig(const DataModuleRegistry& modules, const AugmentationRegistry& augmentations,
             const BatchTransformRegistry& batch_transforms);

  config::Component module;
  std::string task = "auto";  ///< What is learned of the data; auto: what the data set is for.
  std::string path;           ///< Empty: the usual places.
  int64_t batch_size = 128;
  int64_t eval_batch = 0;  ///< 0: as `batch_size`.
  int64_t threads = -1;    ///< -1: one a core; 0: none besides the training thread.
  int64_t prefetch = 4;
  config::ComponentList augment;
  config::ComponentList batch_transforms;
  std::string normalize = "data";  ///< data, imagenet or none; `mean` and `deviation` go before it.
  std::vector<double> mean;        ///< One a channel, where 1 is full brightness.
  std::vector<double> deviation;
  int64_t image_size = 0;   ///< 0: as the images are, all of one size.
  int64_t channels = 0;     ///< 1, 3, or 0: as the images have.
  int64_t context = 128;    ///< Tokens of a text that the model sees at once.
  int64_t eval_stride = 0;  ///< 0: `context`.
  double validation = 0;    ///< Part of the training data to cut off where none is given.
  std::string exif_orientation = "apply";  ///< apply or ignore.
  std::string in_memory = "auto";          ///< auto, yes or no.
  std::string on_error = "stop";           ///< stop or skip.
  bool shuffle = true;
};

void visit(config::Visitor& visitor, DataConfig& config);

/// Threads that a loader gets on a machine of so many cores.
int loader_threads(const DataConfig& config, int cores);

/// Settings of the loader for training, and of the one for evaluation: in order, to the last
/// sample.
LoaderConfig training_loader(const DataConfig& config, int cores);
LoaderConfig evaluation_loader(const DataConfig& config, int cores);

/// The normalization of `count` channels or columns (`unit`) if it does not depend on the data:
/// `data.mean` with `data.std`, or none. Throws UsageError if these are of another number.
std::optional<Normalization> given_normalization(const DataConfig& config, size_t count,
                                                 const char* unit);

/// What a reader needs of the section.
ReadContext read_context(const DataConfig& config, int cores);

}  // namespace gallop::data
