#include "gallop/data/segmentation.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"
#include "gallop/data/data_config.h"
#include "gallop/data/file_images.h"
#include "gallop/data/find.h"
#include "gallop/data/folder_listing.h"
#include "gallop/data/image_module.h"
#include "gallop/data/image_samples.h"
#include "gallop/data/parallel.h"
#include "gallop/data/skips.h"
#include "gallop/data/text_samples.h"

namespace gallop::data {

namespace {

constexpr int kMaxValue = 255;

/// Images with their masks, by number.
struct Pairs {
  std::vector<std::string> images, masks;
};

std::string stem_of(const std::string& name) { return fs::path(name).stem().string(); }

std::map<std::string, std::string> by_stem(const fs::path& folder) {
  std::map<std::string, std::string> files;
  const FolderListing listing = list_folder(folder);
  if (!listing.unusable.empty()) {
    const UnusableImage& first = listing.unusable.front();
    throw DataError(
        fmt::format("{}: {}", printable((folder / first.name).string()), first.problem));
  }
  for (const std::string& name : listing.images) {
    const auto [place, is_new] = files.emplace(stem_of(name), (folder / name).string());
    if (is_new) continue;
    throw DataError(fmt::format("{} and {} have the same name without ending",
                                printable(place->second), printable((folder / name).string())));
  }
  return files;
}

/// Every image with the mask of its name.
Pairs pairs_in(const fs::path& folder, SkipPolicy& skips) {
  auto images = by_stem(folder / "images"), masks = by_stem(folder / "masks");
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
    skips.add("mask without an image", printable(mask) + ": there is no image of this name");
  }
  if (pairs.images.empty()) {
    throw DataError(printable(folder.string()) + ": has no image with a mask");
  }
  return pairs;
}

bool has_pairs(const fs::path& folder) {
  std::error_code ignored;
  return fs::is_directory(folder / "images", ignored) &&
         fs::is_directory(folder / "masks", ignored);
}

/// The folder of each part; empty where there is none.
std::array<fs::path, kParts> find_parts(const std::string& path) {
  const fs::path root = find_user_data("segmentation", path);
  std::array<fs::path, kParts> folders;
  for (size_t i = 0; i < kParts; ++i) {
    for (const std::string& word : part_words(static_cast<Part>(i))) {
      if (folders[i].empty() && has_pairs(root / word)) folders[i] = root / word;
    }
  }
  if (folders[0].empty() && has_pairs(root)) folders[0] = root;
  if (!folders[0].empty()) return folders;
  throw DataError(fmt::format("{}: has neither train/images with train/masks nor images with masks",
                              printable(root.string())));
}

/// Reads masks as they are stored.
void read_mask(const FileImages& masks, int64_t index, Image& mask) {
  masks.read(index, {.channels = 0, .orient = false}, mask);
  if (mask.channels == 1) return;
  throw DataError(fmt::format("{}: a mask is a gray PNG of class indices, but this one is in color",
                              printable(masks.describe(index))));
}

/// Remembers which part of an image was cut out.
class RememberedRegion final : public RegionChooser {
 public:
  RememberedRegion(const Augmentation& augmentation, Philox& random)
      : augmentation_(augmentation), random_(random) {}
  Region choose(int height, int width) override {
    region = augmentation_.cut(height, width, random_);
    return *region;
  }
  std::optional<Region> region;

 private:
  const Augmentation& augmentation_;
  Philox& random_;
};

int reflected(int at, int size) { return at < 0 ? -at : at >= size ? 2 * (size - 1) - at : at; }

class SegmentationSamples final : public Samples {
 public:
  struct Options {
    ImagePipeline pipeline;
    int64_t classes = 0, ignore_index = 255;
  };

  SegmentationSamples(const FileImages& images, const FileImages& masks, const Options& options,
                      std::vector<std::unique_ptr<Augmentation>> augmentations)
      : Samples(fields_of(options.pipeline)),
        images_(images),
        masks_(masks),
        options_(options),
        shaper_(images, options.pipeline.shape, options.pipeline.resize),
        normalizer_(options.pipeline.mean, options.pipeline.deviation, options.pipeline.dtype),
        augmentations_(std::move(augmentations)) {
    const ImageShape& shape = options.pipeline.shape;
    for (const auto& augmentation : augmentations_) {
      augmentation->check(shape.height, shape.width);
      if (augmentation->cuts() && !options.pipeline.resize) {
        throw UsageError("random-resized-crop needs the size to resize to; set data.image_size");
      }
    }
  }

  int64_t size() const override { return images_.size(); }
  std::string describe(int64_t index) const override { return images_.describe(index); }
  std::unique_ptr<Scratch> make_scratch() const override {
    auto buffers = std::make_unique<Buffers>();
    const ImageShape& shape = options_.pipeline.shape;
    buffers->moved.resize(static_cast<size_t>(shape.height) * static_cast<size_t>(shape.width) *
                          static_cast<size_t>(shape.channels));
    return buffers;
  }

  bool fill(int64_t index, int64_t epoch, const SampleRow& row, Scratch& scratch) const override {
    try {
      fill_row(index, epoch, row, static_cast<Buffers&>(scratch));
      return true;
    } catch (const ShapeError&) {
      throw;
    } catch (const DataError&) {
      if (options_.pipeline.skip_broken) return false;
      throw;
    }
  }

 private:
  struct Buffers final : Scratch {
    ImageShaper::Buffers reading;
    std::vector<uint8_t> moved;
    Image mask;
  };

  static Fields fields_of(const ImagePipeline& pipeline) {
    const ImageShape& shape = pipeline.shape;
    return {{.name = "image",
             .shape = {.sizes = {shape.channels, shape.height, shape.width},
                       .dtype = pipeline.dtype,
                       .channels_last = true}},
            {.name = "mask",
             .shape = {.sizes = {shape.height, shape.width}, .dtype = c10::ScalarType::Long}}};
  }

  void fill_row(int64_t index, int64_t epoch, const SampleRow& row, Buffers& buffers) const {
    const ImagePipeline& pipeline = options_.pipeline;
    const ImageShape& shape = pipeline.shape;
    Philox random(pipeline.seed, Purpose::kAugment, static_cast<uint64_t>(epoch),
                  static_cast<uint64_t>(index));
    std::optional<RememberedRegion> cut;
    if (!augmentations_.empty() && augmentations_.front()->cuts()) {
      cut.emplace(*augmentations_.front(), random);
    }
    const uint8_t* pixels = shaper_.read(index, cut ? &*cut : nullptr, buffers.reading);
    MovePlan plan{.height = shape.height, .width = shape.width};
    const SampleKey key{.seed = pipeline.seed, .epoch = epoch, .index = index};
    for (const auto& augmentation : augmentations_) augmentation->plan(key, random, plan);
    if (!plan.is_identity()) {
      move_pixels(plan, shape.channels, pixels, buffers.moved.data());
      pixels = buffers.moved.data();
    }
    normalizer_.write(pixels, int64_t{shape.height} * shape.width * shape.channels, row.raw(0));

    read_mask(masks_, index, buffers.mask);
    check_size(index, buffers.mask);
    const std::optional<Region> region = cut ? cut->region : std::nullopt;
    write_labels(index, buffers.mask, region, plan, row.as<int64_t>(1));
  }

  void check_size(int64_t index, const Image& mask) const {
    const ImageShape image = images_.header(index).shape;
    if (image.height == mask.height && image.width == mask.width) return;
    throw DataError(fmt::format("{}: the mask is {}x{}, but its image is {}x{}",
                                printable(masks_.describe(index)), mask.height, mask.width,
                                image.height, image.width));
  }

  // The nearest value of the mask for each pixel, moved as the image was.
  void write_labels(int64_t index, const Image& mask, const std::optional<Region>& cut,
                    const MovePlan& plan, int64_t* labels) const {
    const ImageShape& shape = options_.pipeline.shape;
    Region from{.height = mask.height, .width = mask.width};
    if (cut) {
      from = *cut;
    } else if (options_.pipeline.resize) {
      const int side = std::min(mask.height, mask.width);
      from = {.top = (mask.height - side) / 2,
              .left = (mask.width - side) / 2,
              .height = side,
              .width = side};
    }
    for (int y = 0; y < shape.height; ++y) {
      for (int x = 0; x < shape.width; ++x) {
        labels[y * shape.width + x] =
            label_at(index, mask, from, plan.top + y, plan.left + plan.step * x, plan.border);
      }
    }
  }

  int64_t label_at(int64_t index, const Image& mask, const Region& from, int y, int x,
                   Border border) const {
    const ImageShape& shape = options_.pipeline.shape;
    const bool is_inside = y >= 0 && y < shape.height && x >= 0 && x < shape.width;
    if (!is_inside && border == Border::kBlack) return kIgnoredTarget;
    if (border == Border::kReflect) {
      y = reflected(y, shape.height);
      x = reflected(x, shape.width);
    }
    y = std::clamp(y, 0, shape.height - 1);
    x = std::clamp(x, 0, shape.width - 1);
    const int row = from.top + (2 * y + 1) * from.height / (2 * shape.height);
    const int column = from.left + (2 * x + 1) * from.width / (2 * shape.width);
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

  const FileImages& images_;
  const FileImages& masks_;
  Options options_;
  ImageShaper shaper_;
  Normalizer normalizer_;
  std::vector<std::unique_ptr<Augmentation>> augmentations_;
};

/// As many as the masks have values, without the ignored one.
int64_t count_classes(const FileImages& masks, int64_t ignore_index, int threads) {
  std::array<std::atomic<bool>, kMaxValue + 1> seen{};
  run_parallel(threads, masks.size(), [&](int64_t i) {
    Image mask;
    read_mask(masks, i, mask);
    for (const uint8_t value : mask.pixels) {
      if (!seen[value].load(std::memory_order_relaxed)) seen[value] = true;
    }
  });
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
    SkipPolicy skips(all.on_error == "skip");
    const auto folders = find_parts(all.path);
    for (size_t i = 0; i < kParts; ++i) {
      if (folders[i].empty()) continue;
      Pairs pairs = pairs_in(folders[i], skips);
      files.push_back(folders[i].string());
      images_[i].emplace(std::move(pairs.images), all.exif_orientation == "apply");
      masks_[i].emplace(std::move(pairs.masks), false);
    }
    for (const SkipCount& skipped : skips.counts()) notes.push_back(describe(skipped));
    signature.kind = "images";
    signature.task = choose_task(all, {"segmentation"});
    choose_classes(config, std::max(1, loader_threads(all, context.options.cores)));
    if (context.builds_samples) build(config, context);
  }
  ~SegmentationModule() override {
    // Before the images that they read.
    for (auto* samples : {&train, &unaugmented, &validation, &test, &for_trained_}) {
      samples->reset();
    }
  }

  const Samples* samples_for(Part part, const Signature& trained) override {
    const auto& images = images_[static_cast<size_t>(part)];
    if (!images) return nullptr;
    for_trained_ = std::make_unique<ImageSamples>(*images, pipeline_of(trained),
                                                  std::vector<std::unique_ptr<Augmentation>>());
    return for_trained_.get();
  }

 private:
  void choose_classes(const SegmentationConfig& config, int threads) {
    signature.classes = config.classes;
    if (!config.classes.empty()) return;
    const int64_t classes = count_classes(*masks_[0], config.ignore_index, threads);
    for (int64_t i = 0; i < classes; ++i) signature.classes.push_back(fmt::format("class {}", i));
  }

  ImageShape shape_for(const DataConfig& config) const {
    ImageShape shape = images_[0]->header(0).shape;
    for (int64_t i = 1; i < images_[0]->size() && shape.channels == 1; ++i) {
      shape.channels = images_[0]->header(i).shape.channels;
    }
    if (config.channels > 0) shape.channels = static_cast<int>(config.channels);
    if (config.image_size > 0) {
      shape.height = shape.width = static_cast<int>(config.image_size);
    }
    return shape;
  }

  void build(const SegmentationConfig& config, const DataContext& context) {
    const DataConfig& all = context.config;
    const ImageShape shape = shape_for(all);
    const Normalization normalization =
        normalization_of(all, *images_[0], shape, identity(), context.options);
    signature.channels = shape.channels;
    signature.height = shape.height;
    signature.width = shape.width;
    signature.mean = normalization.mean;
    signature.deviation = normalization.deviation;
    const SegmentationSamples::Options options{.pipeline = {.shape = shape,
                                                            .resize = all.image_size > 0,
                                                            .skip_broken = all.on_error == "skip",
                                                            .seed = context.options.seed,
                                                            .mean = normalization.mean,
                                                            .deviation = normalization.deviation,
                                                            .dtype = context.options.image_dtype},
                                               .classes = signature.outputs(),
                                               .ignore_index = config.ignore_index};
    const auto samples =
        [&](size_t part,
            std::vector<std::unique_ptr<Augmentation>> augment) -> std::unique_ptr<Samples> {
      if (!images_[part]) return nullptr;
      return std::make_unique<SegmentationSamples>(*images_[part], *masks_[part], options,
                                                   std::move(augment));
    };
    auto augment = build_augmentations(context.augmentations, all.augment);
    if (!augment.empty()) unaugmented = samples(0, {});
    train = samples(0, std::move(augment));
    validation = samples(1, {});
    test = samples(2, {});
  }

  // Changes when a file changes.
  std::string identity() const {
    std::string all = "segmentation";
    for (int64_t i = 0; i < images_[0]->size(); ++i) {
      std::error_code ignored;
      const fs::path file = images_[0]->describe(i);
      all += fmt::format("\n{} {} {}", file.string(), fs::file_size(file, ignored),
                         fs::last_write_time(file, ignored).time_since_epoch().count());
    }
    return all;
  }

  std::array<std::optional<FileImages>, kParts> images_, masks_;
  std::unique_ptr<Samples> for_trained_;
};

}  // namespace

void visit(config::Visitor& visitor, SegmentationConfig& config) {
  visitor.field({.name = "classes",
                 .help = "names of the classes, in the order of the masks' values; none: counted"},
                config.classes);
  visitor.field({.name = "ignore_index",
                 .help = "value of mask pixels that do not count",
                 .min = 0,
                 .max = kMaxValue},
                config.ignore_index);
}

std::unique_ptr<DataModule> open_segmentation(const SegmentationConfig& config,
                                              const DataContext& context) {
  return std::make_unique<SegmentationModule>(config, context);
}

}  // namespace gallop::data
