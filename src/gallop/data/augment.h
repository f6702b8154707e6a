#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gallop/base/philox.h"
#include "gallop/config/component.h"
#include "gallop/data/image.h"
#include "gallop/data/pixels/operations.h"

namespace gallop::data {

/// The inputs that determine all random choices for one image.
struct SampleKey {
  uint64_t seed = 0;
  int64_t epoch = 0;
  int64_t index = 0;
};

/// The value of pixels outside the image.
enum class Border {
  kBlack,    ///< Bytes of 0, as in torchvision, which pads before it normalizes.
  kReflect,  ///< Mirrored at the outermost pixel, which is not repeated.
  kEdge,     ///< The outermost pixel repeated.
};

/// The row or column of an axis of `size` pixels that supplies position `at`; -1 for black.
int source_of(int at, int size, Border border);

/// The source coordinates of an image of fixed size. Several augmentations share one plan, so that
/// pixels are copied once: output (y, x) is source (top + y, left + step * x).
struct MovePlan {
  int height = 0;  ///< Height of source and output.
  int width = 0;
  int top = 0;
  int left = 0;
  int step = 1;  ///< 1, or -1 if mirrored.
  Border border = Border::kBlack;

  /// Shifts the image up by `rows` and left by `columns` for the following augmentations.
  void shift(int rows, int columns);
  /// Mirrors the image for the following augmentations.
  void mirror();
  bool is_identity() const { return top == 0 && left == 0 && step == 1; }
};

/// Executes a plan: `out` has height x width x channels bytes and must not overlap `source`.
void move_pixels(const MovePlan& plan, int channels, const uint8_t* source, uint8_t* out);

/// A rectangle of the normalized image to overwrite, in all channels.
struct Erasing {
  Region region;
  float value = 0;  ///< 0 is the mean of the data.
  /// Overwrite with standard normal values that are drawn with this seed, instead of `value`.
  std::optional<uint64_t> noise_seed;
};

/// What augmentations work on, in the order in which a list must have them.
enum class AugmentStage {
  kCut,      ///< The original image before it is resized; only the first of a list.
  kMove,     ///< Whole pixels, which are copied to other places.
  kPixels,   ///< The values of pixels, also between their places.
  kErasing,  ///< The normalized image.
};

/// A random augmentation of training images. It draws what to do, as a pure function of its
/// arguments, by the function of its stage; ImageReader does it.
class Augmentation {
 public:
  virtual ~Augmentation() = default;

  virtual AugmentStage stage() const { return AugmentStage::kMove; }
  bool cuts() const { return stage() == AugmentStage::kCut; }
  /// Whether it can do the same to a mask of the image.
  virtual bool supports_masks() const { return true; }
  /// Throws UsageError if images of this shape are not supported.
  virtual void check(const ImageShape& /*shape*/) const {}

  /// kCut: returns the crop of an original image of this size.
  virtual Region cut(int height, int width, Philox& /*random*/) const {
    return {.height = height, .width = width};
  }
  /// kMove: appends this augmentation to `plan`.
  virtual void plan(const SampleKey& /*key*/, Philox& /*random*/, MovePlan& /*plan*/) const {}
  /// kPixels: appends the operations for an image of this shape.
  virtual void draw(const ImageShape& /*shape*/, Philox& /*random*/,
                    std::vector<pixels::Operation>& /*operations*/) const {}
  /// kErasing: appends the rectangles of an image of this shape.
  virtual void draw(const ImageShape& /*shape*/, Philox& /*random*/,
                    std::vector<Erasing>& /*erasings*/) const {}
};

/// Augmentations by name.
using AugmentationRegistry = config::Registry<Augmentation>;
AugmentationRegistry built_in_augmentations();

/// Builds a list of augmentations. Throws UsageError if one is repeated, or comes after one of a
/// later stage.
std::vector<std::unique_ptr<Augmentation>> build_augmentations(const AugmentationRegistry& registry,
                                                               const config::ComponentList& list);

}  // namespace gallop::data
