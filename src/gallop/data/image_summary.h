#pragma once

#include <cstdint>

#include "gallop/base/file.h"
#include "gallop/data/image.h"

namespace gallop::data {

/// What the headers of a set of images say, all of them. Indices are -1 where there is none.
struct ImageSummary {
  int64_t images = 0;
  int64_t gray = 0, color = 0, unreadable = 0;
  int64_t turned = 0;             ///< With an EXIF orientation other than 1 that is applied.
  int64_t other_size = 0;         ///< Of another size than the first that can be read.
  int64_t height = 0, width = 0;  ///< Of that one; 0 where none can be read.
  int64_t first_color = -1, first_unreadable = -1, first_other_size = -1;

  bool operator==(const ImageSummary&) const = default;
};

/// Reads all headers; those of a set that lies in memory in one shape are not needed. The result
/// does not depend on the number of threads.
ImageSummary summarize_images(const ImageSet& images, int threads);

/// Where summaries are kept, so that a large set is looked at once and not at every start.
struct SummaryCache {
  fs::path folder;
  int64_t min_images = 10'000;  ///< Those of smaller sets take less time than they are worth.
};

/// The same, from the cache where identity and stamps of the images are those of the cached one. A
/// damaged entry is made again; one that cannot be written is left out.
ImageSummary cached_summary(const ImageSet& images, int threads, const SummaryCache& cache);

}  // namespace gallop::data
