#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/data/dataset.h"

namespace gallop::data {

/// What inspect() found in one part of an image data set.
struct ImagePartReport {
  std::string name;  ///< train, validation or test.
  int64_t images = 0;
  std::vector<int64_t> class_counts;
  int min_height = 0, max_height = 0, min_width = 0, max_width = 0;  ///< 0 where none was decoded.
  int64_t gray = 0, color = 0;  ///< Decoded images by what they are stored as.
  int64_t turned = 0;           ///< By their EXIF orientation.
  int64_t broken = 0;
  std::vector<std::string> broken_examples;  ///< Up to ten, each with its reason.
};

/// What it found in one part of a text.
struct TextPartReport {
  std::string name;
  int64_t tokens = 0;
};

/// How many samples a split of other data has.
struct SplitReport {
  std::string name;
  int64_t samples = 0;
};

/// What a person wants to know of a data set before training on it.
struct DataReport {
  std::vector<ImagePartReport> images;
  std::vector<std::string> class_names;
  double imbalance = 1;  ///< Largest over smallest class of the training part that has images.
  std::vector<std::string> empty_classes;  ///< Classes without a training image.
  std::vector<TextPartReport> texts;
  std::vector<std::string> vocabulary;
  std::string unit;          ///< What a token is: characters, bytes or words.
  std::string text_samples;  ///< What a sample of text is called; empty: they are not counted.
  std::vector<SplitReport> others;  ///< Splits of data of another kind.
  std::vector<SkipCount> skipped;   ///< By readers; broken images are counted in the parts.
  std::vector<std::string> notes;
};

/// Classes are called out of balance where the largest has more than so many times the images of
/// the smallest.
inline constexpr double kBalanced = 3;

/// Looks at every part and decodes every image that does not lie decoded in memory.
DataReport inspect(const ImageParts& parts, int threads);
DataReport inspect(const TextParts& parts);

/// Tables and remarks for a person, each line ended.
std::string to_text(const DataReport& report);

/// One JSON object with the same contents.
std::string to_json(const DataReport& report);

}  // namespace gallop::data
