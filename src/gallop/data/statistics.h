#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gallop/base/file.h"
#include "gallop/data/image.h"

namespace gallop::data {

/// Exact pixel sums of a set of images, from which mean and standard deviation are computed.
struct ImageStatistics {
  struct Channel {
    uint64_t sum = 0;
    uint64_t sum_of_squares = 0;
    bool operator==(const Channel&) const = default;
  };

  int64_t images = 0;  ///< Number of images read.
  int64_t pixels = 0;
  std::vector<Channel> channels;

  /// Means per channel, on a scale where 1 is full brightness.
  std::vector<double> means() const;
  /// Standard deviations per channel; never 0, so that they can be used as divisors.
  std::vector<double> deviations() const;
  bool operator==(const ImageStatistics&) const = default;
};

struct StatisticsOptions {
  int channels = 3;
  int min_side = 0;  ///< JPEGs may be decoded at a reduced scale down to this side; 0: no
                     ///< reduction.
  int64_t max_images = 10'000;  ///< A larger set is sampled with a fixed seed.
  bool skip_broken = false;
  int threads = 1;
};

/// Reads the images and sums their pixels. The result is independent of the number of threads.
/// Throws DataError if an image is damaged (unless skipped) or none is left.
ImageStatistics measure_statistics(const ImageSet& images, const StatisticsOptions& options);

/// Like measure_statistics(), cached in `cache_folder` under `identity`, which identifies the data.
/// A damaged entry is recomputed; an unwritable folder is ignored.
ImageStatistics cached_statistics(const ImageSet& images, const StatisticsOptions& options,
                                  const std::string& identity, const fs::path& cache_folder);

}  // namespace gallop::data
