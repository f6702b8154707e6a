#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/data/dataset.h"

namespace gallop::data {

/// The results of inspect() for one split of an image data set.
struct ImagePartReport {
  std::string name;  ///< train, validation or test.
  int64_t images = 0;
  std::vector<int64_t> class_counts;
  int min_height = 0, max_height = 0, min_width = 0, max_width = 0;  ///< 0 if none was decoded.
  int64_t gray = 0, color = 0;  ///< Decoded images by stored channels.
  int64_t turned = 0;           ///< Images rotated by their EXIF orientation.
  int64_t broken = 0;
  std::vector<std::string> broken_examples;  ///< Up to ten, each with its reason.
};

/// The results of inspect() for one split of a text.
struct TextPartReport {
  std::string name;
  int64_t tokens = 0;
};

/// The number of samples in a split of other data.
struct SplitReport {
  std::string name;
  int64_t samples = 0;
};

/// A summary of a data set for the user.
struct DataReport {
  std::vector<ImagePartReport> images;
  std::vector<std::string> class_names;
  double imbalance = 1;  ///< Largest over smallest nonempty class of the training split.
  std::vector<std::string> empty_classes;  ///< Classes without a training image.
  std::vector<TextPartReport> texts;
  std::vector<std::string> vocabulary;
  std::string unit;                 ///< Type of tokens: characters, bytes or words.
  std::string text_samples;         ///< Name of a sample of text; empty: samples are not counted.
  std::vector<SplitReport> others;  ///< Splits of other kinds of data.
  std::vector<SkipCount> skipped;   ///< Items skipped by readers; broken images are in `images`.
  std::vector<std::string> notes;
};

/// Classes are reported as imbalanced if the largest has more than this many times the images of
/// the smallest.
inline constexpr double kBalanced = 3;

/// The number of images of each class. An image with several labels counts for each of them.
std::vector<int64_t> count_classes(const ImageSet& set);

/// Inspects all splits and decodes every image that is not already decoded in memory.
DataReport inspect(const ImageParts& parts, int threads);
DataReport inspect(const TextParts& parts);

/// Formats the report as tables and remarks, each line terminated.
std::string to_text(const DataReport& report);

/// Formats the report as one JSON object.
std::string to_json(const DataReport& report);

}  // namespace gallop::data
