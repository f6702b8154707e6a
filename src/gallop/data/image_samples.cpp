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

struct ImageSamples::Buffers final : Scratch {
  explicit Buffers(ImageReader::Buffers of_image) : image(std::move(of_image)) {}
  ImageReader::Buffers image;
};

ImageSamples::ImageSamples(const ImageSet& images, const ImagePipeline& pipeline,
                           std::vector<std::unique_ptr<Augmentation>> augmentations)
    : Samples(
          {image_field(pipeline), {.name = "label", .shape = {.dtype = c10::ScalarType::Long}}}),
      reader_(images, pipeline, std::move(augmentations)) {}

std::unique_ptr<Scratch> ImageSamples::make_scratch() const {
  return std::make_unique<Buffers>(reader_.make_buffers());
}

bool ImageSamples::fill(int64_t index, int64_t epoch, const SampleRow& row,
                        Scratch& scratch) const {
  return reader_.fill_or_skip([&] {
    reader_.read(index, epoch, row.raw(0), static_cast<Buffers&>(scratch).image);
    *row.as<int64_t>(1) = reader_.images().label(index);
  });
}

}  // namespace gallop::data
