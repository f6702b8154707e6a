#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gallop/config/component.h"
#include "gallop/data/bytes.h"
#include "gallop/data/image.h"
#include "gallop/data/samples.h"
#include "gallop/data/skips.h"

namespace gallop::data {

/// Tokens of a text and what they stand for.
struct TextSet {
  Block<int32_t> tokens;
  std::vector<std::string> vocabulary;  ///< Text of each token.
};

/// The parts of a data set as its reader found them: images or text, never both. A part that the
/// files do not have is null and is cut from the training part by DataConfig::validation.
struct Parts {
  std::unique_ptr<ImageSet> train_images, validation_images, test_images;
  std::unique_ptr<TextSet> train_text, validation_text, test_text;
  /// Images of a test part without classes: to predict, and neither to train nor to evaluate on.
  std::unique_ptr<ImageSet> unlabeled_test;
  std::vector<std::string> files;  ///< What was read, for the run's identity.
  /// What a person should know though it is no error: files ignored, a part without classes.
  std::vector<std::string> notes;
  std::vector<SkipCount> skipped;  ///< What `data.on_error: skip` has left out, by reason.
};

class SharedData;

/// What readers need to know besides their own options.
struct ReadContext {
  std::string path;              ///< `data.path`, empty for the usual places.
  bool skip_broken = false;      ///< `data.on_error: skip`.
  bool orient = true;            ///< `data.exif_orientation: apply`.
  int threads = 1;               ///< For work at the start: scanning, decoding.
  SharedData* shared = nullptr;  ///< Where other processes find what was read; null: nowhere.
};

/// Readers by name: fashion-mnist, mnist, cifar10, cifar100, folder, tar, text.
using ReaderRegistry = config::Registry<Parts, const ReadContext&>;
ReaderRegistry built_in_readers();

}  // namespace gallop::data
