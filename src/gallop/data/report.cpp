#include "gallop/data/report.h"

#include <algorithm>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/data/parallel.h"
#include "gallop/data/part.h"

namespace gallop::data {

namespace {

constexpr int64_t kChunk = 256;  // Images per task of a thread.
constexpr size_t kExamples = 10;

// What one thread found in a chunk of a split. Chunks are merged in order, so that the examples do
// not depend on the number of threads.
struct Seen {
  int min_height = 0, max_height = 0, min_width = 0, max_width = 0;
  int64_t gray = 0, color = 0, turned = 0, broken = 0;
  std::vector<std::string> examples;

  void add(int height, int width, int channels, int64_t count) {
    min_height = min_height == 0 ? height : std::min(min_height, height);
    min_width = min_width == 0 ? width : std::min(min_width, width);
    max_height = std::max(max_height, height);
    max_width = std::max(max_width, width);
    (channels == 1 ? gray : color) += count;
  }
};

Seen look_at(const ImageSet& set, int64_t first, int64_t last) {
  Seen seen;
  Image image;
  for (int64_t i = first; i < last; ++i) {
    try {
      set.read(i, {.channels = 0}, image);
      seen.add(image.height, image.width, image.channels, 1);
      if (set.header(i).orientation != 1) ++seen.turned;
    } catch (const DataError& error) {
      ++seen.broken;
      if (seen.examples.size() < kExamples) seen.examples.push_back(error.what());
    }
  }
  return seen;
}

void merge(const Seen& seen, ImagePartReport& part) {
  if (seen.gray + seen.color > 0) {
    const bool is_first = part.max_height == 0;
    part.min_height = is_first ? seen.min_height : std::min(part.min_height, seen.min_height);
    part.min_width = is_first ? seen.min_width : std::min(part.min_width, seen.min_width);
    part.max_height = std::max(part.max_height, seen.max_height);
    part.max_width = std::max(part.max_width, seen.max_width);
  }
  part.gray += seen.gray;
  part.color += seen.color;
  part.turned += seen.turned;
  part.broken += seen.broken;
  for (const std::string& example : seen.examples) {
    if (part.broken_examples.size() < kExamples) part.broken_examples.push_back(example);
  }
}

ImagePartReport inspect_part(const ImageSet& set, const char* name, int threads) {
  ImagePartReport part;
  part.name = name;
  part.images = set.size();
  part.class_counts = count_classes(set);
  if (const auto shape = set.stored_shape()) {
    Seen all;
    all.add(shape->height, shape->width, shape->channels, set.size());
    merge(all, part);
    return part;
  }
  const int64_t chunks = (set.size() + kChunk - 1) / kChunk;
  std::vector<Seen> seen(static_cast<size_t>(chunks));
  run_parallel(threads, chunks, [&](int64_t i) {
    seen[static_cast<size_t>(i)] = look_at(set, i * kChunk, std::min(set.size(), (i + 1) * kChunk));
  });
  for (const Seen& piece : seen) merge(piece, part);
  return part;
}

void compare_classes(const ImagePartReport& train, DataReport& report) {
  int64_t smallest = 0, largest = 0;
  for (size_t i = 0; i < train.class_counts.size(); ++i) {
    const int64_t count = train.class_counts[i];
    if (count == 0) {
      report.empty_classes.push_back(report.class_names[i]);
      continue;
    }
    smallest = smallest == 0 ? count : std::min(smallest, count);
    largest = std::max(largest, count);
  }
  if (smallest > 0) report.imbalance = static_cast<double>(largest) / static_cast<double>(smallest);
}

}  // namespace

std::vector<int64_t> count_classes(const ImageSet& set) {
  std::vector<int64_t> counts(set.class_names().size());
  for (int64_t index = 0; index < set.size(); ++index) {
    if (set.target_size() == 0) {
      ++counts[static_cast<size_t>(set.label(index))];
      continue;
    }
    for (size_t i = 0; i < counts.size(); ++i) counts[i] += set.targets(index)[i] > 0 ? 1 : 0;
  }
  return counts;
}

DataReport inspect(const ImageParts& parts, int threads) {
  DataReport report;
  report.notes = parts.notes;
  report.skipped = parts.skipped;
  const ImageSet* images[kParts] = {parts.train.get(), parts.validation.get(), parts.test.get()};
  for (size_t i = 0; i < kParts; ++i) {
    if (images[i]) report.images.push_back(inspect_part(*images[i], kPartNames[i], threads));
  }
  report.class_names = parts.train->class_names();
  compare_classes(report.images[0], report);
  return report;
}

DataReport inspect(const TextParts& parts) {
  DataReport report;
  report.notes = parts.notes;
  const TextSet* texts[kParts] = {parts.train.get(), parts.validation.get(), parts.test.get()};
  for (size_t i = 0; i < kParts; ++i) {
    if (texts[i]) {
      report.texts.push_back({kPartNames[i], static_cast<int64_t>(texts[i]->tokens.size())});
    }
  }
  report.vocabulary = parts.train->vocabulary;
  return report;
}

}  // namespace gallop::data
