#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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

/// The parts of a data set as its reader found them. A part that the files do not have is null and
/// is cut from the training part by DataConfig::validation.
template <typename Set>
struct Parts {
  std::unique_ptr<Set> train, validation, test;
  /// A test part without classes: to predict, and neither to train nor to evaluate on.
  std::unique_ptr<Set> unlabeled_test;
  std::vector<std::string> files;  ///< What was read, for the run's identity.
  /// What a person should know though it is no error: files ignored, a part without classes.
  std::vector<std::string> notes;
  std::vector<SkipCount> skipped;  ///< What `data.on_error: skip` has left out, by reason.
};

using ImageParts = Parts<ImageSet>;
using TextParts = Parts<TextSet>;

class SharedData;

/// What readers need to know besides their own options.
struct ReadContext {
  std::string path;              ///< `data.path`, empty for the usual places.
  bool skip_broken = false;      ///< `data.on_error: skip`.
  bool orient = true;            ///< `data.exif_orientation: apply`.
  int threads = 1;               ///< For work at the start: scanning, decoding.
  SharedData* shared = nullptr;  ///< Where other processes find what was read; null: nowhere.
};

}  // namespace gallop::data
