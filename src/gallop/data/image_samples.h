#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gallop/data/augment.h"
#include "gallop/data/image_shaper.h"
#include "gallop/data/normalize.h"
#include "gallop/data/samples.h"
#include "gallop/data/signature.h"

namespace gallop::data {

/// What is done to images between reading them and the batch.
struct ImagePipeline {
  ImageShape shape;
  bool resize = false;                  ///< Bring images of any size to `shape`.
  bool skip_broken = false;             ///< Leave damaged images out instead of throwing.
  uint64_t seed = 0;                    ///< Of the augmentations.
  std::vector<double> mean = {0};       ///< One a channel; 1 is full brightness.
  std::vector<double> deviation = {1};  ///< One a channel.
  c10::ScalarType dtype = c10::ScalarType::Float;  ///< Or BFloat16.
};

/// What images are made ready by for a model that was trained on data of this signature: resized to
/// its shape and normalized alike.
ImagePipeline pipeline_of(const Signature& trained);

/// Images as training samples: "image" [C, H, W], channels last, and its "label", int64.
class ImageSamples final : public Samples {
 public:
  /// `images` must outlive the samples. Without augmentations an image is the same in every epoch.
  /// Throws UsageError where an augmentation does not fit the images' shape.
  ImageSamples(const ImageSet& images, const ImagePipeline& pipeline,
               std::vector<std::unique_ptr<Augmentation>> augmentations);

  int64_t size() const override { return images_.size(); }
  bool every_target_counts() const override { return true; }
  std::unique_ptr<Scratch> make_scratch() const override;
  std::string describe(int64_t index) const override { return images_.describe(index); }
  bool fill(int64_t index, int64_t epoch, const SampleRow& row, Scratch& scratch) const override;

 private:
  struct Buffers;

  const ImageSet& images_;
  ImagePipeline pipeline_;
  ImageShaper shaper_;
  Normalizer normalizer_;
  std::vector<std::unique_ptr<Augmentation>> augmentations_;
};

}  // namespace gallop::data
