#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/data/data_config.h"
#include "gallop/data/dataset.h"
#include "gallop/data/image.h"
#include "gallop/data/samples.h"
#include "gallop/data/shared_data.h"

namespace gallop::data {

/// What open_data() needs to know besides the recipe's section.
struct OpenOptions {
  uint64_t seed = 0;  ///< Of the split, the windows of a text and the augmentations.
  int cores = 1;
  int64_t memory_bytes = 0;  ///< Of the machine; a quarter may hold decoded images.
  /// How many processes share that; each has such a part for what is not in `shared`.
  int memory_parts = 1;
  std::shared_ptr<SharedData> shared{};                  ///< With other processes; null: nothing.
  fs::path cache_folder;                                 ///< For statistics, user_cache_folder().
  c10::ScalarType image_dtype = c10::ScalarType::Float;  ///< Or BFloat16.
};

/// Everything that training and evaluation need of the data.
struct TrainingData {
  std::shared_ptr<SharedData> shared;
  std::unique_ptr<Parts> parts;
  std::vector<std::unique_ptr<ImageSet>> derived;  ///< Cached images over `parts`.

  std::unique_ptr<Samples> train;        ///< Augmented.
  std::unique_ptr<Samples> unaugmented;  ///< The same as they are; null where nothing is augmented.
  std::unique_ptr<Samples> validation;   ///< Null where there is none.
  std::unique_ptr<Samples> test;         ///< Null where there is none.

  std::vector<std::string> names;       ///< Of the classes, or the text of each token.
  ImageShape image_shape;               ///< Height 0 for text.
  std::vector<double> mean, deviation;  ///< That images are normalized by, one a channel.
  std::vector<std::string> notes;       ///< What a person should know.

  bool is_text() const { return image_shape.height == 0; }
  /// The part to evaluate on while training: validation, else test, else null.
  const Samples* evaluation() const { return validation ? validation.get() : test.get(); }
};

/// Reads the data set that the config names and builds its samples. Throws UsageError and
/// DataError.
TrainingData open_data(const DataConfig& config, const ReaderRegistry& readers,
                       const AugmentationRegistry& augmentations, const OpenOptions& options);

/// The same for parts that were read before.
TrainingData build_data(const DataConfig& config, std::unique_ptr<Parts> parts,
                        const AugmentationRegistry& augmentations, const OpenOptions& options);

}  // namespace gallop::data
