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

/// The tokens of a text and the vocabulary that they index.
struct TextSet {
  Block<int32_t> tokens;
  std::vector<std::string> vocabulary;  ///< Text of each token.
};

/// The splits of a data set as found by its reader. A missing validation split is null and is split
/// off the training data as DataConfig::validation says.
template <typename Set>
struct Parts {
  std::unique_ptr<Set> train, validation, test;
  /// A test split without classes, which can be predicted but not trained or evaluated on.
  std::unique_ptr<Set> unlabeled_test;
  std::vector<std::string> files;  ///< The files that were read, for the run's identity.
  /// Remarks for the user that are not errors: ignored files, a split without classes.
  std::vector<std::string> notes;
  std::vector<SkipCount> skipped;  ///< Items left out by `data.on_error: skip`, by reason.
};

struct ImageParts : Parts<ImageSet> {
  std::string task = "classification";  ///< That the targets of the images are for.
  std::vector<std::string> targets{};   ///< Names of the numbers to predict.
  bool standardize_targets = false;     ///< By mean and deviation of the training split.
};
using TextParts = Parts<TextSet>;

class SharedData;

/// Inputs of readers besides their own options.
struct ReadContext {
  std::string path;              ///< `data.path`; empty for the default locations.
  bool skip_broken = false;      ///< `data.on_error: skip`.
  bool orient = true;            ///< `data.exif_orientation: apply`.
  int threads = 1;               ///< Threads for work at start-up: scanning, decoding.
  SharedData* shared = nullptr;  ///< Where other processes find what was read; null: not shared.
};

}  // namespace gallop::data
