#include "gallop/data/image_module.h"

#include <limits>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/file_state.h"
#include "gallop/base/text.h"
#include "gallop/data/cached_images.h"
#include "gallop/data/exclusion.h"
#include "gallop/data/group_split.h"
#include "gallop/data/image_samples.h"
#include "gallop/data/image_summary.h"
#include "gallop/data/quality/image_quality.h"
#include "gallop/data/report.h"
#include "gallop/data/set_properties.h"
#include "gallop/data/shared_data.h"
#include "gallop/data/statistics.h"
#include "gallop/data/table/scaling.h"

namespace gallop::data {

namespace {

constexpr int64_t kShareOfMemory = 4;
constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
// The number of images to measure, and for large images, which have more pixels each.
constexpr int64_t kMeasuredImages = 10'000;
constexpr int64_t kMeasuredLargeImages = 2'000;
constexpr int64_t kLargePixels = int64_t{128} * 128;

// Identifies the images whose mean and standard deviation are cached.
std::string identity_of(const DataConfig& config, const ImageParts& parts,
                        const OpenOptions& options) {
  std::string identity = config.module.name();
  // The seed determines the validation split.
  const Holdout holdout = holdout_of(config, options.seed);
  if (!holdout.is_empty()) identity += " " + holdout.identity();
  for (const std::string& name : excluded_names(config.exclude)) identity += "\n" + name;
  // The images may lie beside the files that name them.
  if (!parts.train->identity().empty()) {
    identity += "\n" + content_key(*parts.train, reader_threads(config, options.cores));
  }
  return gallop::identity_of(identity, {parts.files.begin(), parts.files.end()});
}

/// An image data set that owns everything its samples read.
class ImageModule final : public DataModule {
 public:
  ImageModule(std::unique_ptr<ImageParts> parts, std::vector<NamedFiles> named_files,
              const DataContext& context)
      : parts_(std::move(parts)),
        named_files_(std::move(named_files)),
        shared_(context.options.shared) {
    files = parts_->files;
  }
  ~ImageModule() override {
    release_samples();  // Before the images that they read.
    for_trained_.reset();
  }

  std::vector<NamedFiles> named_files() const override { return named_files_; }

  DataReport inspect(int threads) const override { return data::inspect(*parts_, threads); }

  DataQuality check_quality(int threads) const override {
    DataQuality quality =
        check_images({parts_->train.get(), parts_->validation.get(), parts_->test.get()}, threads);
    quality.notes = notes;
    return quality;
  }

  const Samples* samples_for(Part part, const Signature& trained) override {
    const ImageSet* images = part == Part::kTrain        ? parts_->train.get()
                             : part == Part::kValidation ? parts_->validation.get()
                                                         : parts_->test.get();
    if (part == Part::kTest && images == nullptr) images = parts_->unlabeled_test.get();
    if (images == nullptr) return nullptr;
    for_trained_ = std::make_unique<ImageSamples>(*images, pipeline_of(trained),
                                                  std::vector<std::unique_ptr<Augmentation>>());
    return for_trained_.get();
  }

 private:
  friend class ImageModuleBuilder;
  std::unique_ptr<ImageParts> parts_;
  std::vector<NamedFiles> named_files_;
  std::shared_ptr<SharedData> shared_;
  std::vector<std::unique_ptr<ImageSet>> derived_;  // Cached images over the splits.
  std::unique_ptr<Samples> for_trained_;
};

/// Builds the samples of the three splits of an image data set.
class ImageModuleBuilder {
 public:
  ImageModuleBuilder(const DataContext& context, const std::vector<std::string>& groups,
                     ImageModule& module)
      : config_(context.config),
        groups_(groups),
        augmentations_(context.augmentations),
        options_(context.options),
        builds_samples_(context.builds_samples),
        module_(module) {}

  void build() {
    ImageParts& parts = *module_.parts_;
    const Holdout holdout = holdout_of(config_, options_.seed);
    module_.held_out = holds_out(holdout, parts.validation != nullptr);
    // Before the images' headers are read, as damaged ones may be excluded; and after the
    // validation split, which is the same with and without exclusions.
    const bool cuts_first = !builds_samples_ || !config_.exclude.empty();
    if (module_.held_out && cuts_first) cut_images(parts, holdout, groups_);
    exclude_images(parts, config_.exclude);
    module_.excluded = true;
    module_.notes = parts.notes;
    for (const SkipCount& skipped : parts.skipped) module_.notes.push_back(describe(skipped));
    if (!builds_samples_) return;
    if (config_.rectangular_validation && !resizes()) {
      throw UsageError(
          "data.rectangular_validation needs data.image_size, the length of the shorter side");
    }
    shape_ =
        shape_of_set(parts, config_, threads(), {.folder = options_.cache_folder}, module_.notes);
    if (module_.held_out && !cuts_first) cut_images(parts, holdout, groups_);
    auto augment = build_augmentations(augmentations_, config_.augment);
    cuts_ = !augment.empty() && augment.front()->cuts();
    const ImageSet& train = cuts_ ? *parts.train : cached(*parts.train);
    // Measured on the originals, so that the result does not depend on how many images fit in
    // memory. Without resizing, the cache has the same pixels and is filled on the way.
    normalization_ = normalization_of(
        config_, resizes() ? *parts.train : train, shape_,
        [&] { return identity_of(config_, parts, options_); }, options_);
    module_.signature = {.kind = "images",
                         .task = choose_task(config_, {parts.task}),
                         .channels = shape_.channels,
                         .height = shape_.height,
                         .width = shape_.width,
                         .mean = normalization_.mean,
                         .deviation = normalization_.deviation,
                         .classes = parts.train->class_names(),
                         .targets = parts.targets};
    if (parts.standardize_targets) fit_targets(*parts.train);
    if (!augment.empty()) module_.unaugmented = samples(train, {});
    module_.train = samples(train, std::move(augment));
    if (parts.validation) module_.validation = evaluation_samples(*parts.validation);
    if (parts.test) module_.test = evaluation_samples(*parts.test);
  }

 private:
  bool resizes() const { return config_.image_size > 0; }
  int threads() const { return reader_threads(config_, options_.cores); }

  void fit_targets(const ImageSet& images) {
    for (int64_t target = 0; target < images.target_size(); ++target) {
      std::vector<double> values;
      for (int64_t i = 0; i < images.size(); ++i) values.push_back(images.targets(i)[target]);
      const MeanDeviation scale = mean_deviation(values);
      module_.signature.target_mean.push_back(scale.mean);
      module_.signature.target_deviation.push_back(scale.deviation);
    }
  }

  // Whether to cache decoded images if they need this much memory. Random crops of the originals
  // differ in every epoch, so there is nothing to cache.
  bool keeps_within(int64_t bytes) const {
    if (config_.in_memory != "auto") return config_.in_memory == "yes";
    const ImageParts& parts = *module_.parts_;
    int64_t images = cuts_ ? 0 : parts.train->size();
    for (const auto* set : {&parts.validation, &parts.test}) {
      if (*set && !config_.rectangular_validation) images += (*set)->size();
    }
    const auto needed = CachedImages::bytes_needed(images, shape_);
    return needed && *needed <= bytes;
  }

  const ImageSet& cached(const ImageSet& images) {
    if (images.stored_shape() && !resizes()) return images;
    const int64_t of_machine = options_.memory_bytes / kShareOfMemory;
    std::shared_ptr<const SharedPieces> shared;
    if (keeps_within(of_machine)) shared = shared_pieces(images, of_machine);
    if (!shared && !keeps_within(of_machine / options_.memory_parts)) return images;
    module_.derived_.push_back(
        std::make_unique<CachedImages>(images, shape_, resizes(), std::move(shared)));
    return *module_.derived_.back();
  }

  // The cache covers the whole set, even if it was split in two, because other runs may split it
  // differently.
  std::shared_ptr<const SharedPieces> shared_pieces(const ImageSet& images, int64_t limit) const {
    const std::string identity = images.identity();
    if (!options_.shared || identity.empty()) return nullptr;
    const auto bytes_of = [&](int64_t count) {
      return CachedImages::bytes_needed(count, shape_).value_or(kNoLimit);
    };
    return options_.shared->pieces(fmt::format("{}\n{} {} {} {}", identity, shape_.height,
                                               shape_.width, shape_.channels, resizes()),
                                   images.origins(), bytes_of(1),
                                   bytes_of(cuts_ ? images.size() : images.origins()),
                                   config_.in_memory == "yes" ? kNoLimit : limit);
  }

  std::unique_ptr<Samples> samples(const ImageSet& images,
                                   std::vector<std::unique_ptr<Augmentation>> augment,
                                   std::vector<ImageShape> shapes = {}) const {
    return std::make_unique<ImageSamples>(
        images,
        ImagePipeline{.shape = shape_,
                      .resize = resizes(),
                      .skip_broken = config_.on_error == "skip",
                      .seed = options_.seed,
                      .mean = normalization_.mean,
                      .deviation = normalization_.deviation,
                      .dtype = options_.image_dtype,
                      .target_mean = module_.signature.target_mean,
                      .target_deviation = module_.signature.target_deviation},
        std::move(augment), std::move(shapes));
  }

  std::unique_ptr<Samples> evaluation_samples(const ImageSet& images) {
    if (!config_.rectangular_validation) return samples(cached(images), {});
    return samples(images, {},
                   shapes_of_rectangles(images, shape_.height, shape_.channels, threads()));
  }

  const DataConfig& config_;
  const std::vector<std::string>& groups_;  // Groups of the training images, by a column.
  const AugmentationRegistry& augmentations_;
  const OpenOptions& options_;
  bool builds_samples_;
  ImageModule& module_;
  ImageShape shape_;
  Normalization normalization_;
  bool cuts_ = false;
};

}  // namespace

Normalization normalization_of(const DataConfig& config, const ImageSet& images,
                               const ImageShape& shape,
                               const std::function<std::string()>& identity,
                               const OpenOptions& options) {
  if (shape.channels == 2) throw UsageError("data.channels must be 0, 1 or 3, not 2");
  const auto given = given_normalization(config, static_cast<size_t>(shape.channels), "channels");
  if (given) return *given;
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
                         .threads = reader_threads(config, options.cores)},
                        identity(), options.cache_folder);
  return {statistics.means(), statistics.deviations()};
}

std::unique_ptr<DataModule> make_image_module(std::unique_ptr<ImageParts> parts,
                                              const DataContext& context,
                                              const std::vector<std::string>& groups,
                                              std::vector<NamedFiles> named_files) {
  if (!parts->train) {
    throw DataError(
        fmt::format("data set '{}' has no training split", context.config.module.name()));
  }
  auto module = std::make_unique<ImageModule>(std::move(parts), std::move(named_files), context);
  ImageModuleBuilder(context, groups, *module).build();
  return module;
}

}  // namespace gallop::data
