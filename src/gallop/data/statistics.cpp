#include "gallop/data/statistics.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <sstream>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/hash.h"
#include "gallop/base/left_over.h"
#include "gallop/base/permutation.h"
#include "gallop/data/parallel.h"

namespace gallop::data {

namespace {

constexpr int kMaxChannels = 3;
constexpr uint64_t kSampleSeed = 0;  // Part of the meaning of a cached file.
constexpr int64_t kImagesPerTask = 64;

// A lane reads every 48th byte, which always belongs to the same channel of 1 or 3.
constexpr int64_t kLanes = 48;
// 32 bits hold the sum of squares of this many bytes per lane.
constexpr int64_t kRun = kLanes << 16;

struct Lanes {
  uint32_t sums[kLanes] = {};
  uint32_t squares[kLanes] = {};
};

[[gnu::always_inline]] inline void add_run(const uint8_t* bytes, int64_t count, Lanes& lanes) {
  Lanes here = lanes;
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int64_t k = 0; k < kLanes; ++k) {
      const uint32_t value = bytes[i + k];
      here.sums[k] += value;
      here.squares[k] += value * value;
    }
  }
  for (int64_t k = 0; i + k < count; ++k) {
    const uint32_t value = bytes[i + k];
    here.sums[k] += value;
    here.squares[k] += value * value;
  }
  lanes = here;
}

void add_run_plain(const uint8_t* bytes, int64_t count, Lanes& lanes) {
  add_run(bytes, count, lanes);
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void add_run_avx2(const uint8_t* bytes, int64_t count, Lanes& lanes) {
  add_run(bytes, count, lanes);
}
#endif

using AddRun = void (*)(const uint8_t*, int64_t, Lanes&);

AddRun best_add_run() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) return add_run_avx2;
#endif
  return add_run_plain;
}

void add_pixels(const uint8_t* pixels, int64_t count, ImageStatistics& statistics) {
  static const AddRun kAddRun = best_add_run();
  const size_t channels = statistics.channels.size();
  const int64_t bytes = count * static_cast<int64_t>(channels);
  for (int64_t begin = 0; begin < bytes; begin += kRun) {
    Lanes lanes;
    kAddRun(pixels + begin, std::min(kRun, bytes - begin), lanes);
    for (size_t lane = 0; lane < static_cast<size_t>(kLanes); ++lane) {
      statistics.channels[lane % channels].sum += lanes.sums[lane];
      statistics.channels[lane % channels].sum_of_squares += lanes.squares[lane];
    }
  }
  ++statistics.images;
  statistics.pixels += count;
}

void add(const ImageStatistics& part, ImageStatistics& total) {
  total.images += part.images;
  total.pixels += part.pixels;
  for (size_t c = 0; c < part.channels.size(); ++c) {
    total.channels[c].sum += part.channels[c].sum;
    total.channels[c].sum_of_squares += part.channels[c].sum_of_squares;
  }
}

ImageStatistics no_statistics(int channels) {
  ImageStatistics statistics;
  statistics.channels.resize(static_cast<size_t>(channels));
  return statistics;
}

std::string to_text(const ImageStatistics& statistics, const std::string& key) {
  std::string text = fmt::format("gallop-statistics 1\n{}\n{} {} {}\n", key, statistics.images,
                                 statistics.pixels, statistics.channels.size());
  for (const auto& channel : statistics.channels) {
    text += fmt::format("{} {}\n", channel.sum, channel.sum_of_squares);
  }
  return text + fmt::format("{:016x}\n", xxh3_64(text));
}

// Returns nullopt if the file is not what to_text() writes for this key.
std::optional<ImageStatistics> from_text(const std::string& text, const std::string& key,
                                         int channels) {
  std::istringstream lines(text);
  std::string title, file_key;
  ImageStatistics statistics = no_statistics(channels);
  size_t channel_count = 0;
  std::getline(lines, title);
  std::getline(lines, file_key);
  lines >> statistics.images >> statistics.pixels >> channel_count;
  for (auto& channel : statistics.channels) lines >> channel.sum >> channel.sum_of_squares;
  if (!lines || to_text(statistics, key) != text) return std::nullopt;
  return statistics;
}

}  // namespace

std::vector<double> ImageStatistics::means() const {
  std::vector<double> result;
  for (const auto& channel : channels) {
    result.push_back(static_cast<double>(channel.sum) / (255.0 * static_cast<double>(pixels)));
  }
  return result;
}

std::vector<double> ImageStatistics::deviations() const {
  std::vector<double> result;
  for (const auto& channel : channels) {
    // n * sum of squares - sum^2 is exact in 128 bits; a difference of means would cancel.
    __extension__ using Wide = unsigned __int128;
    const Wide difference =
        static_cast<Wide>(static_cast<uint64_t>(pixels)) * channel.sum_of_squares -
        static_cast<Wide>(channel.sum) * channel.sum;
    const double deviation =
        std::sqrt(static_cast<double>(difference)) / (255.0 * static_cast<double>(pixels));
    // A constant channel is not scaled up.
    result.push_back(deviation > 1e-6 ? deviation : 1);
  }
  return result;
}

ImageStatistics measure_statistics(const ImageSet& images, const StatisticsOptions& options) {
  ImageStatistics total = no_statistics(options.channels);
  const int64_t size = images.size();
  if (size < 1) throw DataError("the data set has no images to take a mean of");
  const bool all = size <= options.max_images;
  const int64_t count = all ? size : options.max_images;
  const Permutation sample(kSampleSeed, 0, size);
  const auto stored = images.stored_shape();
  const bool in_memory = stored && stored->channels == options.channels;

  std::mutex mutex;
  const int64_t tasks = (count + kImagesPerTask - 1) / kImagesPerTask;
  run_parallel(options.threads, tasks, [&](int64_t task) {
    ImageStatistics part = no_statistics(options.channels);
    Image image;
    const int64_t end = std::min(count, (task + 1) * kImagesPerTask);
    for (int64_t i = task * kImagesPerTask; i < end; ++i) {
      const int64_t index = all ? i : sample(i);
      try {
        if (in_memory) {
          add_pixels(images.stored_pixels(index), int64_t{stored->height} * stored->width, part);
        } else {
          images.read(index, {.channels = options.channels, .min_side = options.min_side}, image);
          add_pixels(image.pixels.data(), int64_t{image.height} * image.width, part);
        }
      } catch (const DataError&) {
        if (!options.skip_broken) throw;
      }
    }
    const std::lock_guard lock(mutex);
    add(part, total);
  });
  if (total.images == 0) {
    throw DataError(fmt::format("none of {} images can be decoded, so they have no mean", count));
  }
  return total;
}

ImageStatistics cached_statistics(const ImageSet& images, const StatisticsOptions& options,
                                  const std::string& identity, const fs::path& cache_folder) {
  const std::string key =
      xxh3_128(fmt::format("{}\n{} {} {} {}", identity, images.size(), options.channels,
                           options.min_side, options.max_images));
  const fs::path path = cache_folder / "statistics" / key;
  try {
    if (const auto cached = from_text(read_file(path, 4096), key, options.channels)) return *cached;
  } catch (const DataError&) {
    // The entry is missing or unreadable: it is measured below.
  }
  ImageStatistics statistics = measure_statistics(images, options);
  try {
    make_folders(path.parent_path());
    remove_left_files(path.parent_path());
    write_file_atomically(path, to_text(statistics, key));
  } catch (const DeviceError&) {
    // Without the cache, the next run measures again; nothing is lost.
  }
  return statistics;
}

}  // namespace gallop::data
