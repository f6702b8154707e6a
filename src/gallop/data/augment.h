#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gallop/base/philox.h"
#include "gallop/config/component.h"
#include "gallop/data/image.h"

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

/// A random augmentation of training images. A pure function of its arguments.
class Augmentation {
 public:
  virtual ~Augmentation() = default;

  /// Throws UsageError if images of this size are not supported.
  virtual void check(int /*height*/, int /*width*/) const {}
  /// Appends this augmentation to `plan`.
  virtual void plan(const SampleKey& /*key*/, Philox& /*random*/, MovePlan& /*plan*/) const {}

  /// Whether it crops the original image before resizing. It must then be the first of a list.
  virtual bool cuts() const { return false; }
  /// Returns the crop of an original image of this size.
  virtual Region cut(int height, int width, Philox& /*random*/) const {
    return {.height = height, .width = width};
  }
};

/// Augmentations by name.
using AugmentationRegistry = config::Registry<Augmentation>;
AugmentationRegistry built_in_augmentations();

/// Builds a list of augmentations. Throws UsageError if one is repeated or a crop is not first.
std::vector<std::unique_ptr<Augmentation>> build_augmentations(const AugmentationRegistry& registry,
                                                               const config::ComponentList& list);

}  // namespace gallop::data
