#pragma once

#include <cstdint>

#include "gallop/base/file.h"
#include "gallop/data/image.h"

namespace gallop::data {

/// A summary of the headers of all images of a set. Indices are -1 if there is no such image.
struct ImageSummary {
  int64_t images = 0;
  int64_t gray = 0, color = 0, unreadable = 0;
  int64_t turned = 0;             ///< Images with an EXIF orientation other than 1 that is applied.
  int64_t other_size = 0;         ///< Images whose size differs from the first readable one.
  int64_t height = 0, width = 0;  ///< Size of the first readable image; 0 if there is none.
  int64_t first_color = -1, first_unreadable = -1, first_other_size = -1;

  bool operator==(const ImageSummary&) const = default;
};

/// Reads all headers, unless the set is in memory with one shape. The result is independent of the
/// number of threads.
ImageSummary summarize_images(const ImageSet& images, int threads);

/// Identifies the images and the current state of their files.
std::string content_key(const ImageSet& images, int threads);

/// A cache of summaries, so that a large set is not scanned at every start.
struct SummaryCache {
  fs::path folder;
  int64_t min_images = 10'000;  ///< Smaller sets are not cached, as scanning them is fast.
};

/// Like summarize_images(), from the cache if the identity and stamps of the images match. A
/// damaged entry is recomputed; an unwritable cache is ignored.
ImageSummary cached_summary(const ImageSet& images, int threads, const SummaryCache& cache);

}  // namespace gallop::data
