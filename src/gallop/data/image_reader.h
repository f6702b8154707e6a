#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <c10/core/ScalarType.h>

#include "gallop/data/augment.h"
#include "gallop/data/image_shaper.h"
#include "gallop/data/normalize.h"
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

/// Where the pixels of a sample come from, for what has to be moved with its image.
struct ImagePlacement {
  int height = 0, width = 0;  ///< Of the original image.
  Region region;              ///< Of the original that was resized to the pipeline's shape.
  MovePlan plan;              ///< Of pixels of that shape.
};

/// Reads images, and resizes, augments and normalizes them.
class ImageReader {
 public:
  /// Buffers of one thread.
  struct Buffers {
    ImageShaper::Buffers reading;
    std::vector<uint8_t> moved;
  };

  /// `images` must outlive the reader. Without augmentations an image is the same in every epoch.
  /// Throws UsageError if an augmentation does not fit the images' shape.
  ImageReader(const ImageSet& images, const ImagePipeline& pipeline,
              std::vector<std::unique_ptr<Augmentation>> augmentations);

  const ImageSet& images() const { return images_; }
  const ImagePipeline& pipeline() const { return pipeline_; }
  Buffers make_buffers() const;

  /// Writes an image [H, W, C] to `out`. Throws DataError if it is damaged, ShapeError if it has
  /// another shape and is not resized.
  ImagePlacement read(int64_t index, int64_t epoch, void* out, Buffers& buffers) const;

  /// Calls `fill`, which reads a sample. False if it is damaged and damaged samples are skipped.
  template <typename Fill>
  bool fill_or_skip(const Fill& fill) const {
    try {
      fill();
      return true;
    } catch (const ShapeError&) {
      throw;
    } catch (const DataError&) {
      if (pipeline_.skip_broken) return false;
      throw;
    }
  }

 private:
  const ImageSet& images_;
  ImagePipeline pipeline_;
  ImageShaper shaper_;
  Normalizer normalizer_;
  std::vector<std::unique_ptr<Augmentation>> augmentations_;
};

}  // namespace gallop::data
