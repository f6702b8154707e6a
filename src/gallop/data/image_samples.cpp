#include "gallop/data/image_samples.h"

#include <fmt/format.h>

namespace gallop::data {

namespace {

/// Asks an augmentation that cuts.
class Cutter final : public RegionChooser {
 public:
  Cutter(const Augmentation& augmentation, Philox& random)
      : augmentation_(augmentation), random_(random) {}
  Region choose(int height, int width) override {
    return augmentation_.cut(height, width, random_);
  }

 private:
  const Augmentation& augmentation_;
  Philox& random_;
};

Fields fields_of(const ImagePipeline& pipeline) {
  const ImageShape& shape = pipeline.shape;
  return {{.name = "image",
           .shape = {.sizes = {shape.channels, shape.height, shape.width},
                     .dtype = pipeline.dtype,
                     .channels_last = true}},
          {.name = "label", .shape = {.dtype = c10::ScalarType::Long}}};
}

}  // namespace

ImagePipeline pipeline_of(const Signature& trained) {
  return {.shape = {.height = static_cast<int>(trained.height),
                    .width = static_cast<int>(trained.width),
                    .channels = static_cast<int>(trained.channels)},
          .resize = true,
          .mean = trained.mean,
          .deviation = trained.deviation};
}

struct ImageSamples::Buffers final : Scratch {
  ImageShaper::Buffers reading;
  std::vector<uint8_t> moved;
};

ImageSamples::ImageSamples(const ImageSet& images, const ImagePipeline& pipeline,
                           std::vector<std::unique_ptr<Augmentation>> augmentations)
    : Samples(fields_of(pipeline)),
      images_(images),
      pipeline_(pipeline),
      shaper_(images, pipeline.shape, pipeline.resize),
      normalizer_(pipeline.mean, pipeline.deviation, pipeline.dtype),
      augmentations_(std::move(augmentations)) {
  if (static_cast<int>(pipeline.mean.size()) != pipeline.shape.channels) {
    throw InternalError(fmt::format("normalization of {} channels for images of {}",
                                    pipeline.mean.size(), pipeline.shape.channels));
  }
  for (const auto& augmentation : augmentations_) {
    augmentation->check(pipeline.shape.height, pipeline.shape.width);
    if (augmentation->cuts() && !pipeline.resize) {
      throw UsageError("random-resized-crop needs the size to resize to; set data.image_size");
    }
  }
}

std::unique_ptr<Scratch> ImageSamples::make_scratch() const {
  auto buffers = std::make_unique<Buffers>();
  if (!augmentations_.empty()) {
    const ImageShape& shape = pipeline_.shape;
    buffers->moved.resize(static_cast<size_t>(shape.height) * static_cast<size_t>(shape.width) *
                          static_cast<size_t>(shape.channels));
  }
  return buffers;
}

bool ImageSamples::fill(int64_t index, int64_t epoch, const SampleRow& row,
                        Scratch& scratch) const {
  auto& buffers = static_cast<Buffers&>(scratch);
  Philox random(pipeline_.seed, Purpose::kAugment, static_cast<uint64_t>(epoch),
                static_cast<uint64_t>(index));
  const uint8_t* pixels = nullptr;
  try {
    if (!augmentations_.empty() && augmentations_.front()->cuts()) {
      Cutter cutter(*augmentations_.front(), random);
      pixels = shaper_.read(index, &cutter, buffers.reading);
    } else {
      pixels = shaper_.read(index, nullptr, buffers.reading);
    }
  } catch (const ShapeError&) {
    throw;
  } catch (const DataError&) {
    if (pipeline_.skip_broken) return false;
    throw;
  }

  const ImageShape& shape = pipeline_.shape;
  MovePlan plan{.height = shape.height, .width = shape.width};
  const SampleKey key{.seed = pipeline_.seed, .epoch = epoch, .index = index};
  for (const auto& augmentation : augmentations_) augmentation->plan(key, random, plan);
  if (!plan.is_identity()) {
    move_pixels(plan, shape.channels, pixels, buffers.moved.data());
    pixels = buffers.moved.data();
  }
  normalizer_.write(pixels, int64_t{shape.height} * shape.width * shape.channels, row.raw(0));
  *row.as<int64_t>(1) = images_.label(index);
  return true;
}

}  // namespace gallop::data
