#include "gallop/data/image_samples.h"

#include <algorithm>
#include <utility>

#include "gallop/data/parallel.h"

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

Field rectangle_field(const ImagePipeline& pipeline, const std::vector<ImageShape>& shapes) {
  Field field = image_field(pipeline);
  for (const ImageShape& shape : shapes) {
    const auto longer = static_cast<int64_t>(std::max(shape.height, shape.width));
    field.shape.sizes[2] = std::max(field.shape.sizes[2], longer);
  }
  return field;
}

ImageShape rectangle_of(const ImageShape& image, int side, int channels) {
  const int shorter = std::min(image.height, image.width),
            longer = std::max(image.height, image.width);
  const int64_t most = int64_t{side} * kLongestRectangle;
  const int64_t exact = std::min(most, int64_t{side} * longer / shorter);
  const int other = std::max(side, static_cast<int>(exact / kRectangleUnit * kRectangleUnit));
  ImageShape shape{.height = side, .width = side, .channels = channels};
  (image.height > image.width ? shape.height : shape.width) = other;
  return shape;
}

}  // namespace

struct ImageSamples::Buffers final : Scratch {
  explicit Buffers(ImageReader::Buffers of_image) : image(std::move(of_image)) {}
  ImageReader::Buffers image;
};

ImageSamples::ImageSamples(const ImageSet& images, const ImagePipeline& pipeline,
                           std::vector<std::unique_ptr<Augmentation>> augmentations,
                           std::vector<ImageShape> shapes)
    : Samples({rectangle_field(pipeline, shapes), target_field(images)}),
      reader_(images, pipeline, std::move(augmentations)),
      shapes_(std::move(shapes)) {}

std::vector<int64_t> ImageSamples::input_sizes(int64_t index) const {
  if (shapes_.empty()) return {};
  const ImageShape& shape = shapes_[static_cast<size_t>(index)];
  return {shape.channels, shape.height, shape.width};
}

std::unique_ptr<Scratch> ImageSamples::make_scratch() const {
  return std::make_unique<Buffers>(reader_.make_buffers());
}

bool ImageSamples::fill(int64_t index, int64_t epoch, const SampleRow& row,
                        Scratch& scratch) const {
  return reader_.fill_or_skip([&] {
    ImageReader::Buffers& buffers = static_cast<Buffers&>(scratch).image;
    if (shapes_.empty()) {
      reader_.read(index, epoch, row.raw(0), buffers);
    } else {
      reader_.read(index, shapes_[static_cast<size_t>(index)], row.raw(0), buffers);
    }
    if (has_numbers()) {
      write_targets(index, row.as<float>(1));
    } else {
      *row.as<int64_t>(1) = reader_.images().label(index);
    }
  });
}

std::vector<ImageShape> shapes_of_rectangles(const ImageSet& images, int side, int channels,
                                             int threads) {
  std::vector<ImageShape> shapes(static_cast<size_t>(images.size()));
  run_parallel(threads, images.size(), [&](int64_t i) {
    ImageShape image{.height = 1, .width = 1};
    try {
      image = images.header(i).shape;
    } catch (const DataError&) {
      // fill() stops at the image or skips it.
    }
    shapes[static_cast<size_t>(i)] = rectangle_of(image, side, channels);
  });
  return shapes;
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
