#include "gallop/data/image_summary.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "gallop/base/error.h"
#include "gallop/base/hash.h"
#include "gallop/data/packed.h"
#include "gallop/data/parallel.h"

namespace gallop::data {

namespace {

// The format version of cache entries. Increment the number when the format changes.
constexpr const char* kFormat = "gallop images 1";
constexpr int64_t kChunk = 1024;  // Images per task of a thread.

void add(const ImageHeader& header, int64_t index, ImageSummary& summary) {
  const ImageShape& shape = header.shape;
  if (shape.channels == 1) {
    ++summary.gray;
  } else if (summary.color++ == 0) {
    summary.first_color = index;
  }
  if (header.orientation != 1) ++summary.turned;
  if (summary.height == 0) {
    summary.height = shape.height;
    summary.width = shape.width;
  } else if (summary.height != shape.height || summary.width != shape.width) {
    if (summary.other_size++ == 0) summary.first_other_size = index;
  }
}

// `size` is the size of the first readable image of the whole set.
ImageSummary look_at(const ImageSet& images, int64_t begin, int64_t end, const ImageSummary& size) {
  ImageSummary part;
  part.height = size.height;
  part.width = size.width;
  for (int64_t i = begin; i < end; ++i) {
    ++part.images;
    try {
      add(images.header(i), i, part);
    } catch (const DataError&) {
      if (part.unreadable++ == 0) part.first_unreadable = i;
    }
  }
  return part;
}

void merge(const ImageSummary& part, ImageSummary& total) {
  total.images += part.images;
  total.gray += part.gray;
  total.color += part.color;
  total.unreadable += part.unreadable;
  total.turned += part.turned;
  total.other_size += part.other_size;
  if (total.first_color < 0) total.first_color = part.first_color;
  if (total.first_unreadable < 0) total.first_unreadable = part.first_unreadable;
  if (total.first_other_size < 0) total.first_other_size = part.first_other_size;
}

ImageSummary first_size(const ImageSet& images) {
  ImageSummary size;
  for (int64_t i = 0; i < images.size() && size.height == 0; ++i) {
    try {
      const ImageShape shape = images.header(i).shape;
      size.height = shape.height;
      size.width = shape.width;
    } catch (const DataError&) {
      // Unreadable images are counted when all images are scanned.
    }
  }
  return size;
}

std::string to_text(const ImageSummary& summary, const std::string& key) {
  std::string text;
  put_text(text, key);
  put(text, summary);
  put(text, xxh3_64(text));
  return text;
}

std::optional<ImageSummary> from_text(const std::string& text, const std::string& key) {
  Taker taker(text);
  if (taker.take_text() != key) return std::nullopt;
  const auto summary = taker.take<ImageSummary>();
  if (!taker.good() || to_text(summary, key) != text) return std::nullopt;
  return summary;
}

}  // namespace

std::string content_key(const ImageSet& images, int threads) {
  const int64_t chunks = (images.size() + kChunk - 1) / kChunk;
  std::vector<uint64_t> hashes(static_cast<size_t>(chunks));
  run_parallel(threads, chunks, [&](int64_t chunk) {
    std::vector<uint64_t> stamps;
    const int64_t end = std::min(images.size(), (chunk + 1) * kChunk);
    // A file of many images has one stamp, and subsets of them the same identity.
    for (int64_t i = chunk * kChunk; i < end; ++i) {
      stamps.push_back(images.stamp(i));
      stamps.push_back(static_cast<uint64_t>(images.origin(i)));
    }
    hashes[static_cast<size_t>(chunk)] =
        xxh3_64({reinterpret_cast<const char*>(stamps.data()), stamps.size() * sizeof(uint64_t)});
  });
  std::string text = kFormat;
  put_text(text, images.identity());
  put(text, images.size());
  for (const uint64_t hash : hashes) put(text, hash);
  return xxh3_128(text);
}

ImageSummary summarize_images(const ImageSet& images, int threads) {
  if (const auto shape = images.stored_shape()) {
    ImageSummary all{.images = images.size(), .height = shape->height, .width = shape->width};
    (shape->channels == 1 ? all.gray : all.color) = all.images;
    if (shape->channels != 1 && all.images > 0) all.first_color = 0;
    return all;
  }
  ImageSummary total = first_size(images);
  const int64_t chunks = (images.size() + kChunk - 1) / kChunk;
  std::vector<ImageSummary> parts(static_cast<size_t>(chunks));
  run_parallel(threads, chunks, [&](int64_t i) {
    parts[static_cast<size_t>(i)] =
        look_at(images, i * kChunk, std::min(images.size(), (i + 1) * kChunk), total);
  });
  for (const ImageSummary& part : parts) merge(part, total);
  return total;
}

ImageSummary cached_summary(const ImageSet& images, int threads, const SummaryCache& cache) {
  if (images.stored_shape() || images.size() < cache.min_images || images.identity().empty()) {
    return summarize_images(images, threads);
  }
  const std::string key = content_key(images, threads);
  const fs::path path = cache.folder / "images" / key;
  try {
    if (const auto cached = from_text(read_file(path, 4096), key)) return *cached;
  } catch (const DataError&) {
    // The entry is missing or unreadable: the headers are read below.
  }
  const ImageSummary summary = summarize_images(images, threads);
  try {
    make_folders(path.parent_path());
    write_file_atomically(path, to_text(summary, key));
  } catch (const DeviceError&) {
    // Without the cache, the next start reads the headers again; nothing is lost.
  }
  return summary;
}

}  // namespace gallop::data
