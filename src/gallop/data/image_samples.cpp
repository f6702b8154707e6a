#include "gallop/data/image_samples.h"

#include <utility>

namespace gallop::data {

Field image_field(const ImagePipeline& pipeline) {
  const ImageShape& shape = pipeline.shape;
  return {.name = "image",
          .shape = {.sizes = {shape.channels, shape.height, shape.width},
                    .dtype = pipeline.dtype,
                    .channels_last = true}};
}

namespace {

Field target_field(const ImageSet& images) {
  if (images.target_size() > 0) {
    return {.name = "target", .shape = {.sizes = {images.target_size()}}};
  }
  return {.name = "label", .shape = {.dtype = c10::ScalarType::Long}};
}

}  // namespace

struct ImageSamples::Buffers final : Scratch {
  explicit Buffers(ImageReader::Buffers of_image) : image(std::move(of_image)) {}
  ImageReader::Buffers image;
};

ImageSamples::ImageSamples(const ImageSet& images, const ImagePipeline& pipeline,
                           std::vector<std::unique_ptr<Augmentation>> augmentations)
    : Samples({image_field(pipeline), target_field(images)}),
      reader_(images, pipeline, std::move(augmentations)) {}

std::unique_ptr<Scratch> ImageSamples::make_scratch() const {
  return std::make_unique<Buffers>(reader_.make_buffers());
}

bool ImageSamples::fill(int64_t index, int64_t epoch, const SampleRow& row,
                        Scratch& scratch) const {
  return reader_.fill_or_skip([&] {
    reader_.read(index, epoch, row.raw(0), static_cast<Buffers&>(scratch).image);
    if (has_numbers()) {
      write_targets(index, row.as<float>(1));
    } else {
      *row.as<int64_t>(1) = reader_.images().label(index);
    }
  });
}

void ImageSamples::write_targets(int64_t index, float* out) const {
  const auto count = static_cast<size_t>(reader_.images().target_size());
  const float* const values = reader_.images().targets(index);
  const ImagePipeline& scale = reader_.pipeline();
  for (size_t i = 0; i < count; ++i) {
    out[i] =
        scale.target_mean.empty()
            ? values[i]
            : static_cast<float>((values[i] - scale.target_mean[i]) / scale.target_deviation[i]);
  }
}

}  // namespace gallop::data
