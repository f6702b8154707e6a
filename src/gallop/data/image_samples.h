#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gallop/data/image_reader.h"
#include "gallop/data/samples.h"

namespace gallop::data {

/// The field "image" [C, H, W], channels_last, of this pipeline.
Field image_field(const ImagePipeline& pipeline);

/// Samples of images: "image" [C, H, W], channels_last, and "label", int64, or if the images have
/// numbers to predict "target", fp32 [T].
class ImageSamples final : public Samples {
 public:
  /// Like ImageReader. With `shapes`, the shapes_of_rectangles(), images are not augmented.
  ImageSamples(const ImageSet& images, const ImagePipeline& pipeline,
               std::vector<std::unique_ptr<Augmentation>> augmentations,
               std::vector<ImageShape> shapes = {});

  int64_t size() const override { return reader_.images().size(); }
  bool every_target_counts() const override { return !has_numbers(); }
  std::optional<int64_t> label(int64_t index) const override {
    if (has_numbers()) return std::nullopt;
    return reader_.images().label(index);
  }
  int64_t window_blocks() const override { return reader_.images().window_blocks(); }
  int64_t block(int64_t index) const override { return reader_.images().block(index); }
  std::vector<int64_t> input_sizes(int64_t index) const override;
  std::unique_ptr<Scratch> make_scratch() const override;
  std::string describe(int64_t index) const override { return reader_.images().describe(index); }
  bool fill(int64_t index, int64_t epoch, const SampleRow& row, Scratch& scratch) const override;

 private:
  struct Buffers;

  bool has_numbers() const { return reader_.images().target_size() > 0; }
  void write_targets(int64_t index, float* out) const;

  ImageReader reader_;
  std::vector<ImageShape> shapes_;  // Empty: that of the pipeline.
};

/// The shapes of rectangular images: sides that are multiples of kRectangleUnit, of which the
/// shorter one has `side` pixels and the longer one at most kLongestRectangle times as many. Reads
/// the headers of all images; those that cannot be read are squares.
std::vector<ImageShape> shapes_of_rectangles(const ImageSet& images, int side, int channels,
                                             int threads);
inline constexpr int kRectangleUnit = 8;
inline constexpr int kLongestRectangle = 3;

}  // namespace gallop::data
