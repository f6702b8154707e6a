#include "gallop/data/training_data.h"

#include <chrono>
#include <limits>

#include <fmt/format.h>

#include "gallop/base/checked.h"
#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/cached_images.h"
#include "gallop/data/image_samples.h"
#include "gallop/data/set_properties.h"
#include "gallop/data/split.h"
#include "gallop/data/statistics.h"
#include "gallop/data/text_samples.h"

namespace gallop::data {

namespace {

constexpr int64_t kShareOfMemory = 4;
constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
// Images whose mean is taken, and of large ones, where each says more and takes longer.
constexpr int64_t kMeasuredImages = 10'000;
constexpr int64_t kMeasuredLargeImages = 2'000;
constexpr int64_t kLargePixels = int64_t{128} * 128;

/// Means and deviations to normalize by.
struct Normalization {
  std::vector<double> mean, deviation;
};

// What tells one state of the files from another: names, sizes and times of change.
std::string identity_of(const DataConfig& config, const Parts& parts, const OpenOptions& options) {
  std::string identity = config.reader.name();
  // The seed decides which images were held back.
  if (config.validation > 0) identity += fmt::format(" {} {}", config.validation, options.seed);
  for (const auto& file : parts.files) {
    std::error_code error;
    const auto size = fs::file_size(file, error);
    const auto changed = fs::last_write_time(file, error).time_since_epoch().count();
    identity += fmt::format("\n{} {} {}", file, size, changed);
  }
  return identity;
}

Normalization normalization_of(const DataConfig& config, const ImageSet& images,
                               const ImageShape& shape, const std::string& identity,
                               const OpenOptions& options) {
  const auto count = static_cast<size_t>(shape.channels);
  if (!config.mean.empty() || !config.deviation.empty()) {
    if (config.mean.size() != count || config.deviation.size() != count) {
      throw UsageError(fmt::format(
          "data.mean and data.std must have one number for each of the {} channels, not {} and {}",
          shape.channels, config.mean.size(), config.deviation.size()));
    }
    return {config.mean, config.deviation};
  }
  if (config.normalize == "none") {
    return {std::vector<double>(count, 0), std::vector<double>(count, 1)};
  }
  if (config.normalize == "imagenet") {
    if (shape.channels != 3) {
      throw UsageError("data.normalize=imagenet is for color images, and these are gray");
    }
    return {{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}};
  }
  const bool is_large = int64_t{shape.height} * shape.width > kLargePixels;
  const auto statistics =
      cached_statistics(images,
                        {.channels = shape.channels,
                         .min_side = static_cast<int>(config.image_size),
                         .max_images = is_large ? kMeasuredLargeImages : kMeasuredImages,
                         .skip_broken = config.on_error == "skip",
                         .threads = std::max(1, loader_threads(config, options.cores))},
                        identity, options.cache_folder);
  return {statistics.means(), statistics.deviations()};
}

/// Builds the samples of the three parts of an image data set.
class ImageDataBuilder {
 public:
  ImageDataBuilder(const DataConfig& config, const AugmentationRegistry& augmentations,
                   const OpenOptions& options, TrainingData& data)
      : config_(config), augmentations_(augmentations), options_(options), data_(data) {}

  void build() {
    const Parts& parts = *data_.parts;
    auto augment = build_augmentations(augmentations_, config_.augment);
    const bool cuts = !augment.empty() && augment.front()->cuts();
    data_.names = parts.train_images->class_names();
    cuts_ = cuts;
    const ImageSet& train = cuts ? *parts.train_images : cached(*parts.train_images);
    // Of the originals, so that it does not matter how many images memory has room for; where
    // nothing is resized the cache has the same pixels, and is filled on the way.
    auto normalization =
        normalization_of(config_, resizes() ? *parts.train_images : train, data_.image_shape,
                         identity_of(config_, parts, options_), options_);
    data_.mean = std::move(normalization.mean);
    data_.deviation = std::move(normalization.deviation);

    if (!augment.empty()) data_.unaugmented = samples(train, {});
    data_.train = samples(train, std::move(augment));
    if (parts.validation_images) data_.validation = samples(cached(*parts.validation_images), {});
    if (parts.test_images) data_.test = samples(cached(*parts.test_images), {});
  }

 private:
  bool resizes() const { return config_.image_size > 0; }

  // Whether decoded images are kept where there is so much memory for them. Parts that are cut at
  // random are other pixels in every epoch, so there is nothing to keep.
  bool keeps_within(int64_t bytes) const {
    if (config_.in_memory != "auto") return config_.in_memory == "yes";
    const Parts& parts = *data_.parts;
    int64_t images = cuts_ ? 0 : parts.train_images->size();
    for (const auto* set : {&parts.validation_images, &parts.test_images}) {
      if (*set) images += (*set)->size();
    }
    const auto needed = CachedImages::bytes_needed(images, data_.image_shape);
    return needed && *needed <= bytes;
  }

  const ImageSet& cached(const ImageSet& images) {
    if (images.stored_shape() && !resizes()) return images;
    const int64_t of_machine = options_.memory_bytes / kShareOfMemory;
    std::shared_ptr<const SharedPieces> shared;
    if (keeps_within(of_machine)) shared = shared_pieces(images, of_machine);
    if (!shared && !keeps_within(of_machine / options_.memory_parts)) return images;
    data_.derived.push_back(
        std::make_unique<CachedImages>(images, data_.image_shape, resizes(), std::move(shared)));
    return *data_.derived.back();
  }

  // For the images of the whole set, of which two parts may have been cut, as other trainings may
  // cut them otherwise.
  std::shared_ptr<const SharedPieces> shared_pieces(const ImageSet& images, int64_t limit) const {
    const std::string identity = images.identity();
    if (!options_.shared || identity.empty()) return nullptr;
    const ImageShape& shape = data_.image_shape;
    const auto bytes_of = [&](int64_t count) {
      return CachedImages::bytes_needed(count, shape).value_or(kNoLimit);
    };
    return options_.shared->pieces(fmt::format("{}\n{} {} {} {}", identity, shape.height,
                                               shape.width, shape.channels, resizes()),
                                   images.origins(), bytes_of(1),
                                   bytes_of(cuts_ ? images.size() : images.origins()),
                                   config_.in_memory == "yes" ? kNoLimit : limit);
  }

  std::unique_ptr<Samples> samples(const ImageSet& images,
                                   std::vector<std::unique_ptr<Augmentation>> augment) const {
    return std::make_unique<ImageSamples>(images,
                                          ImagePipeline{.shape = data_.image_shape,
                                                        .resize = resizes(),
                                                        .skip_broken = config_.on_error == "skip",
                                                        .seed = options_.seed,
                                                        .mean = data_.mean,
                                                        .deviation = data_.deviation,
                                                        .dtype = options_.image_dtype},
                                          std::move(augment));
  }

  const DataConfig& config_;
  const AugmentationRegistry& augmentations_;
  const OpenOptions& options_;
  TrainingData& data_;
  bool cuts_ = false;
};

void build_text(const DataConfig& config, const OpenOptions& options, TrainingData& data) {
  if (!config.augment.items.empty()) {
    throw UsageError("data.augment is for images, and this data set is text");
  }
  const Parts& parts = *data.parts;
  data.names = parts.train_text->vocabulary;
  data.train = std::make_unique<TextWindows>(*parts.train_text, config.context, options.seed);
  const auto evaluation = [&](const std::unique_ptr<TextSet>& text) -> std::unique_ptr<Samples> {
    if (!text) return nullptr;
    return std::make_unique<TextEvaluation>(*text, config.context, config.eval_stride);
  };
  data.validation = evaluation(parts.validation_text);
  data.test = evaluation(parts.test_text);
}

}  // namespace

TrainingData open_data(const DataConfig& config, const ReaderRegistry& readers,
                       const AugmentationRegistry& augmentations, const OpenOptions& options) {
  ReadContext context = read_context(config, options.cores);
  context.shared = options.shared.get();
  return build_data(config, readers.build(config.reader, context), augmentations, options);
}

TrainingData build_data(const DataConfig& config, std::unique_ptr<Parts> parts,
                        const AugmentationRegistry& augmentations, const OpenOptions& options) {
  if (config.channels == 2) throw UsageError("data.channels must be 0, 1 or 3, not 2");
  TrainingData data;
  data.shared = options.shared;
  data.parts = std::move(parts);
  data.notes = data.parts->notes;
  for (const SkipCount& skipped : data.parts->skipped) data.notes.push_back(describe(skipped));
  if (data.parts->train_images) {
    data.image_shape =
        shape_of_set(*data.parts, config, std::max(1, loader_threads(config, options.cores)),
                     {.folder = options.cache_folder}, data.notes);
  }
  const bool has_validation = data.parts->validation_images || data.parts->validation_text;
  if (config.validation > 0 && !has_validation) {
    cut_validation(*data.parts, config.validation, options.seed);
  }
  if (config.threads > options.cores) {
    data.notes.push_back(
        fmt::format("data.threads is {} on {} cores: more threads than cores only "
                    "take turns",
                    config.threads, options.cores));
  }
  if (data.parts->train_text) {
    build_text(config, options, data);
  } else if (data.parts->train_images) {
    ImageDataBuilder(config, augmentations, options, data).build();
  } else {
    throw DataError(fmt::format("data set '{}' has no training part", config.reader.name()));
  }
  if (data.shared && !data.shared->trouble().empty()) {
    data.notes.push_back("data are not shared with other trainings: " + data.shared->trouble());
  }
  return data;
}

}  // namespace gallop::data
