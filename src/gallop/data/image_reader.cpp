#include "gallop/data/image_reader.h"

#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/philox.h"
#include "gallop/base/trace.h"
#include "gallop/data/augmentations/erasing.h"

namespace gallop::data {

namespace {

/// Chooses the region by a cropping augmentation, or the middle, and records it.
class RecordedRegion final : public RegionChooser {
 public:
  RecordedRegion(const Augmentation* augmentation, const ImageShape& shape, Philox& random,
                 ImagePlacement& placement)
      : augmentation_(augmentation), shape_(shape), random_(random), placement_(placement) {}

  Region choose(int height, int width) override {
    placement_.height = height;
    placement_.width = width;
    placement_.region = augmentation_ != nullptr ? augmentation_->cut(height, width, random_)
                                                 : middle_region(height, width, shape_);
    return placement_.region;
  }

 private:
  const Augmentation* augmentation_;
  const ImageShape& shape_;
  Philox& random_;
  ImagePlacement& placement_;
};

}  // namespace

ImagePipeline pipeline_of(const Signature& trained) {
  return {.shape = {.height = static_cast<int>(trained.height),
                    .width = static_cast<int>(trained.width),
                    .channels = static_cast<int>(trained.channels)},
          .resize = true,
          .mean = trained.mean,
          .deviation = trained.deviation,
          .target_mean = trained.target_mean,
          .target_deviation = trained.target_deviation};
}

ImageReader::ImageReader(const ImageSet& images, const ImagePipeline& pipeline,
                         std::vector<std::unique_ptr<Augmentation>> augmentations)
    : images_(images),
      pipeline_(pipeline),
      shaper_(images, pipeline.shape, pipeline.resize),
      normalizer_(pipeline.mean, pipeline.deviation, pipeline.dtype),
      augmentations_(std::move(augmentations)) {
  if (static_cast<int>(pipeline.mean.size()) != pipeline.shape.channels) {
    throw InternalError(fmt::format("normalization of {} channels for images of {}",
                                    pipeline.mean.size(), pipeline.shape.channels));
  }
  for (const auto& augmentation : augmentations_) {
    augmentation->check(pipeline.shape);
    if (augmentation->cuts() && !pipeline.resize) {
      throw UsageError("random-resized-crop needs the size to resize to; set data.image_size");
    }
  }
}

ImageReader::Buffers ImageReader::make_buffers() const {
  Buffers buffers;
  if (!augmentations_.empty()) {
    const ImageShape& shape = pipeline_.shape;
    buffers.moved.resize(static_cast<size_t>(shape.height) * static_cast<size_t>(shape.width) *
                         static_cast<size_t>(shape.channels));
  }
  return buffers;
}

ImagePlacement ImageReader::read(int64_t index, int64_t epoch, void* out, Buffers& buffers) const {
  const ImageShape& shape = pipeline_.shape;
  ImagePlacement placement{.height = shape.height,
                           .width = shape.width,
                           .region = {.height = shape.height, .width = shape.width},
                           .plan = {.height = shape.height, .width = shape.width}};
  Philox random(pipeline_.seed, Purpose::kAugment, static_cast<uint64_t>(epoch),
                static_cast<uint64_t>(index));
  const bool cuts = !augmentations_.empty() && augmentations_.front()->cuts();
  RecordedRegion region(cuts ? augmentations_.front().get() : nullptr, shape, random, placement);
  const uint8_t* pixels =
      shaper_.read(index, pipeline_.resize ? &region : nullptr, buffers.reading);
  buffers.erasings.clear();
  buffers.operations.clear();
  if (!augmentations_.empty()) {
    const SampleKey key{.seed = pipeline_.seed, .epoch = epoch, .index = index};
    pixels = augment(key, random, pixels, placement.plan, buffers);
  }
  const TraceSpan span(SpanKind::kData, "normalize");
  normalizer_.write(pixels, int64_t{shape.height} * shape.width * shape.channels, out);
  for (const Erasing& erasing : buffers.erasings) erase(erasing, shape, pipeline_.dtype, out);
  return placement;
}

void ImageReader::read(int64_t index, const ImageShape& shape, void* out, Buffers& buffers) const {
  const uint8_t* const pixels = shaper_.read(index, shape, nullptr, buffers.reading);
  const TraceSpan span(SpanKind::kData, "normalize");
  normalizer_.write(pixels, int64_t{shape.height} * shape.width * shape.channels, out);
}

const uint8_t* ImageReader::augment(const SampleKey& key, Philox& random, const uint8_t* pixels,
                                    MovePlan& plan, Buffers& buffers) const {
  const TraceSpan span(SpanKind::kData, "augment");
  const auto random_for = [&](Purpose purpose) {
    return Philox(key.seed, purpose, static_cast<uint64_t>(key.epoch),
                  static_cast<uint64_t>(key.index));
  };
  // A stream of random numbers for each stage, so that adding one does not change the others.
  Philox of_pixels = random_for(Purpose::kPixels), of_erasing = random_for(Purpose::kErasing);
  for (const auto& augmentation : augmentations_) {
    augmentation->plan(key, random, plan);
    augmentation->draw(pipeline_.shape, of_pixels, buffers.operations);
    augmentation->draw(pipeline_.shape, of_erasing, buffers.erasings);
  }
  if (!plan.is_identity()) {
    move_pixels(plan, pipeline_.shape.channels, pixels, buffers.moved.data());
    pixels = buffers.moved.data();
  }
  return buffers.editor.apply(buffers.operations, pipeline_.shape, pixels);
}

}  // namespace gallop::data
