#include "gallop/data/segmentation.h"

#include <algorithm>
#include <atomic>
#include <map>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/file_state.h"
#include "gallop/base/text.h"
#include "gallop/data/data_config.h"
#include "gallop/data/exclusion.h"
#include "gallop/data/file_images.h"
#include "gallop/data/find.h"
#include "gallop/data/folder_listing.h"
#include "gallop/data/image_module.h"
#include "gallop/data/image_samples.h"
#include "gallop/data/parallel.h"
#include "gallop/data/quality/image_quality.h"
#include "gallop/data/report.h"
#include "gallop/data/skip_summary.h"
#include "gallop/data/skips.h"
#include "gallop/data/text_samples.h"

namespace gallop::data {

namespace {

constexpr int kMaxValue = 255;
constexpr int64_t kLookedAt = 32;  // Masks whose values are looked at if the classes are given.

using SeenValues = std::array<std::atomic<bool>, kMaxValue + 1>;

/// Images and their masks, by index.
struct Pairs {
  std::vector<std::string> images, masks;
};

std::string stem_of(const std::string& name) { return fs::path(name).stem().string(); }

std::map<std::string, std::string> by_stem(const fs::path& folder, SkipPolicy& skips) {
  std::map<std::string, std::string> files;
  const FolderListing listing = list_folder(folder);
  for (const UnusableImage& one : listing.unusable) {
    skips.add("image of another format",
              fmt::format("{}: {}", printable((folder / one.name).string()), one.problem));
  }
  for (const std::string& name : listing.images) {
    const auto [place, is_new] = files.emplace(stem_of(name), (folder / name).string());
    if (is_new) continue;
    throw DataError(fmt::format("{} and {} have the same name without ending",
                                printable(place->second), printable((folder / name).string())));
  }
  return files;
}

/// Pairs every image with the mask of the same name.
Pairs pairs_in(const fs::path& folder, SkipPolicy& skips) {
  auto images = by_stem(folder / "images", skips), masks = by_stem(folder / "masks", skips);
  Pairs pairs;
  for (const auto& [stem, image] : images) {
    const auto mask = masks.find(stem);
    if (mask == masks.end()) {
      skips.add("image without a mask",
                fmt::format("{}: there is no mask {} in {}", printable(image),
                            printable(stem + ".png"), printable((folder / "masks").string())));
      continue;
    }
    pairs.images.push_back(image);
    pairs.masks.push_back(mask->second);
    masks.erase(mask);
  }
  for (const auto& [stem, mask] : masks) {
    skips.add("mask without an image", printable(mask) + ": there is no image with this name");
  }
  if (pairs.images.empty()) {
    throw DataError(fmt::format("{}: has no image with a mask{}", printable(folder.string()),
                                skip_summary(skips)));
  }
  return pairs;
}

// By the names of the images.
void exclude(Part part, Pairs& pairs, Exclusion& exclusion) {
  if (exclusion.empty()) return;
  Pairs kept;
  const auto name = [&](int64_t i) { return pairs.images[static_cast<size_t>(i)]; };
  for (const int64_t i : exclusion.keep(part, static_cast<int64_t>(pairs.images.size()), name)) {
    kept.images.push_back(pairs.images[static_cast<size_t>(i)]);
    kept.masks.push_back(pairs.masks[static_cast<size_t>(i)]);
  }
  pairs = std::move(kept);
}

bool has_pairs(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_directory(folder / "images", ignored) &&
         fs::is_directory(folder / "masks", ignored);
}

/// The folder of each split; empty if there is none.
std::array<fs::path, kParts> find_parts(const std::string& path) {
  const fs::path root = find_user_data("segmentation", path);
  std::array<fs::path, kParts> folders;
  for (size_t i = 0; i < kParts; ++i) {
    for (const std::string& word : part_words(static_cast<Part>(i))) {
      if (!has_pairs(root / word)) continue;
      if (!folders[i].empty()) {
        throw DataError(fmt::format("{} and {} both name the {} split; keep one of them",
                                    printable(folders[i].string()),
                                    printable((root / word).string()), kPartNames[i]));
      }
      folders[i] = root / word;
    }
  }
  if (folders[0].empty() && has_pairs(root)) folders[0] = root;
  if (!folders[0].empty()) return folders;
  throw DataError(fmt::format("{}: has neither train/images with train/masks nor images with masks",
                              printable(root.string())));
}

/// Reads masks as stored.
void read_mask(const FileImages& masks, int64_t index, Image& mask) {
  masks.read(index, {.channels = 0, .indices = true, .orient = false}, mask);
  if (mask.channels == 1) return;
  throw DataError(
      fmt::format("{}: a mask is a gray image of class indices, or one with a palette, but this "
                  "one is in color",
                  printable(masks.describe(index))));
}

class SegmentationSamples final : public Samples {
 public:
  struct Options {
    int64_t classes = 0, ignore_index = 255;
  };

  SegmentationSamples(const FileImages& images, const FileImages& masks,
                      const ImagePipeline& pipeline, const Options& options,
                      std::vector<std::unique_ptr<Augmentation>> augmentations)
      : Samples({image_field(pipeline), mask_field(pipeline)}),
        reader_(images, pipeline, std::move(augmentations)),
        masks_(masks),
        options_(options) {}

  int64_t size() const override { return masks_.size(); }
  std::string describe(int64_t index) const override { return reader_.images().describe(index); }
  std::unique_ptr<Scratch> make_scratch() const override {
    return std::make_unique<Buffers>(reader_.make_buffers());
  }

  bool fill(int64_t index, int64_t epoch, const SampleRow& row, Scratch& scratch) const override {
    return reader_.fill_or_skip([&] {
      auto& buffers = static_cast<Buffers&>(scratch);
      const ImagePlacement placement = reader_.read(index, epoch, row.raw(0), buffers.image);
      read_mask(masks_, index, buffers.mask);
      check_size(index, buffers.mask, placement);
      write_labels(index, buffers.mask, placement, row.as<int64_t>(1));
      for (const pixels::Operation& operation : buffers.image.operations) {
        warp_labels(operation, buffers, row.as<int64_t>(1));
      }
    });
  }

 private:
  struct Buffers final : Scratch {
    explicit Buffers(ImageReader::Buffers of_image) : image(std::move(of_image)) {}
    ImageReader::Buffers image;
    Image mask;
    std::vector<int32_t> sources;
    std::vector<int64_t> labels;
  };

  static Field mask_field(const ImagePipeline& pipeline) {
    const ImageShape& shape = pipeline.shape;
    return {.name = "mask",
            .shape = {.sizes = {shape.height, shape.width}, .dtype = c10::ScalarType::Long}};
  }

  void check_size(int64_t index, const Image& mask, const ImagePlacement& image) const {
    if (image.height == mask.height && image.width == mask.width) return;
    throw DataError(fmt::format("{}: the mask is {}x{}, but its image is {}x{}",
                                printable(masks_.describe(index)), mask.height, mask.width,
                                image.height, image.width));
  }

  // Writes the nearest mask value for each pixel, with the same moves as the image.
  void write_labels(int64_t index, const Image& mask, const ImagePlacement& placement,
                    int64_t* labels) const {
    const auto& [top, left, height, width] = placement.region;
    const MovePlan& plan = placement.plan;
    for (int y = 0; y < plan.height; ++y) {
      const int from_y = source_of(plan.top + y, plan.height, plan.border);
      const int row = top + (2 * from_y + 1) * height / (2 * plan.height);
      for (int x = 0; x < plan.width; ++x) {
        const int from_x = source_of(plan.left + plan.step * x, plan.width, plan.border);
        const int column = left + (2 * from_x + 1) * width / (2 * plan.width);
        const bool is_black = from_y < 0 || from_x < 0;
        *labels++ = is_black ? kIgnoredTarget : label_at(index, mask, row, column);
      }
    }
  }

  // Moves the labels with the image; those from outside it are ignored.
  void warp_labels(const pixels::Operation& operation, Buffers& buffers, int64_t* labels) const {
    const auto& [height, width, channels] = reader_.pipeline().shape;
    const size_t count = static_cast<size_t>(height) * static_cast<size_t>(width);
    buffers.sources.resize(count);
    if (!pixels::nearest_sources(operation, height, width, buffers.sources.data())) return;
    buffers.labels.assign(labels, labels + count);
    for (size_t i = 0; i < count; ++i) {
      const int32_t source = buffers.sources[i];
      labels[i] = source < 0 ? kIgnoredTarget : buffers.labels[static_cast<size_t>(source)];
    }
  }

  int64_t label_at(int64_t index, const Image& mask, int row, int column) const {
    const auto value = static_cast<int64_t>(
        mask.pixels[static_cast<size_t>(row) * static_cast<size_t>(mask.width) +
                    static_cast<size_t>(column)]);
    if (value == options_.ignore_index) return kIgnoredTarget;
    if (value < options_.classes) return value;
    throw DataError(
        fmt::format("{}: pixel ({}, {}) is {}, but there are {} classes, and {} is "
                    "ignored",
                    printable(masks_.describe(index)), row, column, value, options_.classes,
                    options_.ignore_index));
  }

  ImageReader reader_;
  const FileImages& masks_;
  Options options_;
};

/// Looks which values the first masks have. Damaged ones are left out or, unless samples may be
/// skipped, are an error.
void look_at(const FileImages& masks, int64_t count, int threads, bool skips, SeenValues& seen) {
  run_parallel(threads, count, [&](int64_t i) {
    Image mask;
    try {
      read_mask(masks, i, mask);
    } catch (const DataError&) {
      if (!skips) throw;
      return;
    }
    for (const uint8_t value : mask.pixels) {
      if (!seen[value].load(std::memory_order_relaxed)) seen[value] = true;
    }
  });
}

/// One more than the largest value, without the ignored one.
int64_t count_classes(const SeenValues& seen, int64_t ignore_index) {
  int64_t classes = 0;
  for (int64_t value = 0; value <= kMaxValue; ++value) {
    if (seen[static_cast<size_t>(value)] && value != ignore_index) classes = value + 1;
  }
  return classes;
}

class SegmentationModule final : public DataModule {
 public:
  SegmentationModule(const SegmentationConfig& config, const DataContext& context) {
    const DataConfig& all = context.config;
    skips_broken_ = all.on_error == "skip";
    SkipPolicy skips(skips_broken_);
    const auto folders = find_parts(all.path);
    Exclusion exclusion(all.exclude);
    for (size_t i = 0; i < kParts; ++i) {
      if (folders[i].empty()) continue;
      Pairs pairs = pairs_in(folders[i], skips);
      exclude(static_cast<Part>(i), pairs, exclusion);
      files.push_back(folders[i].string());
      images_[i].emplace(std::move(pairs.images), all.exif_orientation == "apply");
      masks_[i].emplace(std::move(pairs.masks), false);
    }
    if (!exclusion.empty()) notes.push_back(exclusion.finish());
    excluded = true;
    for (const SkipCount& skipped : skips.counts()) notes.push_back(describe(skipped));
    signature.kind = "images";
    signature.task = choose_task(all, {"segmentation"});
    signature.classes = config.classes;
    ignore_index_ = config.ignore_index;
    if (context.builds_samples) build(context);
  }
  ~SegmentationModule() override {
    release_samples();  // Before the images that they read.
    for_trained_.reset();
  }

  DataReport inspect(int threads) const override {
    DataReport report;
    report.notes = notes;
    report.class_names = class_names(threads);
    for (size_t i = 0; i < kParts; ++i) {
      if (images_[i]) report.others.push_back({kPartNames[i], images_[i]->size()});
    }
    return report;
  }

  DataQuality check_quality(int threads) const override {
    std::array<const ImageSet*, kParts> splits{};
    for (size_t i = 0; i < kParts; ++i) splits[i] = images_[i] ? &*images_[i] : nullptr;
    DataQuality quality = check_images(splits, threads);
    quality.notes = notes;
    return quality;
  }

  const Samples* samples_for(Part part, const Signature& trained) override {
    const auto& images = images_[static_cast<size_t>(part)];
    if (!images) return nullptr;
    for_trained_ = std::make_unique<ImageSamples>(*images, pipeline_of(trained),
                                                  std::vector<std::unique_ptr<Augmentation>>());
    return for_trained_.get();
  }

 private:
  // The names in the recipe, otherwise one per value of the training masks.
  std::vector<std::string> class_names(int threads) const {
    std::vector<std::string> names = signature.classes;
    if (!names.empty()) return names;
    SeenValues seen{};
    look_at(*masks_[0], masks_[0]->size(), threads, skips_broken_, seen);
    const int64_t classes = count_classes(seen, ignore_index_);
    for (int64_t i = 0; i < classes; ++i) names.push_back(fmt::format("class {}", i));
    return names;
  }

  std::string one_class(const std::string& masks) const {
    return fmt::format(
        "the {} have no class but 0, as the value {} is ignored (data.ignore_index); if it is a "
        "class as well, store it as 1",
        masks, ignore_index_);
  }

  // Masks of two classes are often stored as 0 and 255, the second of which would be ignored.
  void choose_classes(int threads) {
    if (signature.classes.empty()) {
      signature.classes = class_names(threads);
      if (signature.classes.size() < 2) throw UsageError(one_class("training masks"));
      return;
    }
    SeenValues seen{};
    const int64_t count = std::min(kLookedAt, masks_[0]->size());
    look_at(*masks_[0], count, threads, /*skips=*/true, seen);
    if (seen[static_cast<size_t>(ignore_index_)] && count_classes(seen, ignore_index_) < 2) {
      const bool is_all = count == masks_[0]->size();
      notes.push_back(
          one_class(is_all ? "training masks" : fmt::format("first {} training masks", count)));
    }
  }

  ImageShape shape_for(const DataConfig& config) const {
    ImageShape shape;
    for (int64_t i = 0; i < images_[0]->size() && shape.channels <= 1; ++i) {
      try {
        const ImageShape one = images_[0]->header(i).shape;
        if (shape.channels == 0) shape = one;
        shape.channels = one.channels;
      } catch (const DataError&) {
        const bool is_last_hope = shape.channels == 0 && i + 1 == images_[0]->size();
        if (!skips_broken_ || is_last_hope) throw;
      }
      if (config.channels > 0 && shape.channels > 0) break;
    }
    if (config.channels > 0) shape.channels = static_cast<int>(config.channels);
    if (config.image_size > 0) {
      shape.height = shape.width = static_cast<int>(config.image_size);
    }
    return shape;
  }

  void build(const DataContext& context) {
    const DataConfig& all = context.config;
    if (all.in_memory == "yes") {
      throw UsageError(
          "data.in_memory=yes is for images with a class or numbers as targets; omit it");
    }
    choose_classes(reader_threads(all, context.options.cores));
    const ImageShape shape = shape_for(all);
    const Normalization normalization = normalization_of(
        all, *images_[0], shape, [&] { return identity(); }, context.options);
    signature.channels = shape.channels;
    signature.height = shape.height;
    signature.width = shape.width;
    signature.mean = normalization.mean;
    signature.deviation = normalization.deviation;
    const ImagePipeline pipeline{.shape = shape,
                                 .resize = all.image_size > 0,
                                 .skip_broken = all.on_error == "skip",
                                 .seed = context.options.seed,
                                 .mean = normalization.mean,
                                 .deviation = normalization.deviation,
                                 .dtype = context.options.image_dtype};
    const SegmentationSamples::Options options{.classes = signature.outputs(),
                                               .ignore_index = ignore_index_};
    const auto samples =
        [&](size_t part,
            std::vector<std::unique_ptr<Augmentation>> augment) -> std::unique_ptr<Samples> {
      if (!images_[part]) return nullptr;
      return std::make_unique<SegmentationSamples>(*images_[part], *masks_[part], pipeline, options,
                                                   std::move(augment));
    };
    auto augment = build_augmentations(context.augmentations, all.augment);
    for (size_t i = 0; i < augment.size(); ++i) {
      if (augment[i]->supports_masks()) continue;
      throw UsageError(fmt::format(
          "augmentation '{}' cannot be applied to masks; color-jitter, gaussian-blur, "
          "random-rotation, random-affine and random-perspective can be used with segmentation",
          all.augment.items[i].name()));
    }
    if (!augment.empty()) unaugmented = samples(0, {});
    train = samples(0, std::move(augment));
    validation = samples(1, {});
    test = samples(2, {});
  }

  std::string identity() const {
    std::vector<fs::path> paths;
    for (int64_t i = 0; i < images_[0]->size(); ++i) paths.emplace_back(images_[0]->describe(i));
    return identity_of("segmentation", paths);
  }

  int64_t ignore_index_ = 0;
  bool skips_broken_ = false;
  std::array<std::optional<FileImages>, kParts> images_, masks_;
  std::unique_ptr<Samples> for_trained_;
};

}  // namespace

void visit(config::Visitor& visitor, SegmentationConfig& config) {
  visitor.field({.name = "classes",
                 .help = "names of the classes, in the order of the masks' values; none: counted"},
                config.classes);
  visitor.field({.name = "ignore_index",
                 .help = "value of mask pixels to ignore",
                 .min = 0,
                 .max = kMaxValue},
                config.ignore_index);
}

std::unique_ptr<DataModule> open_segmentation(const SegmentationConfig& config,
                                              const DataContext& context) {
  return std::make_unique<SegmentationModule>(config, context);
}

}  // namespace gallop::data
