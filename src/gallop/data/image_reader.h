#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <c10/core/ScalarType.h>

#include "gallop/data/augment.h"
#include "gallop/data/image_shaper.h"
#include "gallop/data/normalize.h"
#include "gallop/data/pixels/pixel_editor.h"
#include "gallop/data/signature.h"

namespace gallop::data {

/// The processing of images between reading and batching.
struct ImagePipeline {
  ImageShape shape;
  bool resize = false;                             ///< Resize images of any size to `shape`.
  bool skip_broken = false;                        ///< Skip damaged images instead of throwing.
  uint64_t seed = 0;                               ///< Seed of the augmentations.
  std::vector<double> mean = {0};                  ///< One per channel; 1 is full brightness.
  std::vector<double> deviation = {1};             ///< One per channel.
  c10::ScalarType dtype = c10::ScalarType::Float;  ///< Float or BFloat16.
  /// By which numbers to predict are standardized, one each; empty: they are not.
  std::vector<double> target_mean{}, target_deviation{};
};

/// The preprocessing for a model that was trained on data of this signature: resizing to its shape
/// and the same normalization.
ImagePipeline pipeline_of(const Signature& trained);

/// The origin of a sample's pixels, so that a mask can be moved with its image.
struct ImagePlacement {
  int height = 0, width = 0;  ///< Size of the original image.
  Region region;              ///< Region of the original that was resized to the pipeline's shape.
  MovePlan plan;              ///< Moves of the pixels of the resized image.
};

/// Reads, resizes, augments and normalizes images.
class ImageReader {
 public:
  /// Buffers of one thread.
  struct Buffers {
    ImageShaper::Buffers reading;
    std::vector<uint8_t> moved;
    pixels::PixelEditor editor;
    std::vector<Erasing> erasings;
    /// Those of the last image that was read, so that a mask can be warped with it.
    std::vector<pixels::Operation> operations;
  };

  /// `images` must outlive the reader. Without augmentations, an image is the same in every epoch.
  /// Throws UsageError if an augmentation does not support the images' shape.
  ImageReader(const ImageSet& images, const ImagePipeline& pipeline,
              std::vector<std::unique_ptr<Augmentation>> augmentations);

  const ImageSet& images() const { return images_; }
  const ImagePipeline& pipeline() const { return pipeline_; }
  Buffers make_buffers() const;

  /// Writes an image [H, W, C] to `out`. Throws DataError if it is damaged, ShapeError if it has
  /// another shape and resizing is off.
  ImagePlacement read(int64_t index, int64_t epoch, void* out, Buffers& buffers) const;
  /// Writes an image, without augmentations, that is resized to another shape.
  void read(int64_t index, const ImageShape& shape, void* out, Buffers& buffers) const;

  /// Calls `fill` to read a sample. Returns false if it is damaged and `skip_broken` is set.
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
  /// Draws the random choices of a sample; returns its pixels after them.
  const uint8_t* augment(const SampleKey& key, Philox& random, const uint8_t* pixels,
                         MovePlan& plan, Buffers& buffers) const;

  const ImageSet& images_;
  ImagePipeline pipeline_;
  ImageShaper shaper_;
  Normalizer normalizer_;
  std::vector<std::unique_ptr<Augmentation>> augmentations_;
};

}  // namespace gallop::data
