#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "gallop/base/philox.h"
#include "gallop/config/component.h"
#include "gallop/data/image.h"

namespace gallop::data {

/// What decides all random choices for one image.
struct SampleKey {
  uint64_t seed = 0;
  int64_t epoch = 0;
  int64_t index = 0;
};

/// What a pixel outside the image is.
enum class Border {
  kBlack,    ///< Bytes of 0, as torchvision pads before it normalizes.
  kReflect,  ///< Mirrored at the outermost pixel, which is not repeated.
  kEdge,     ///< The outermost pixel repeated.
};

/// Where the pixels of an image of fixed size come from. Several augmentations add up to one plan,
/// so that the pixels are moved once: output (y, x) is source (top + y, left + step * x).
struct MovePlan {
  int height = 0;  ///< Of source and output.
  int width = 0;
  int top = 0;
  int left = 0;
  int step = 1;  ///< 1, or -1 for mirrored.
  Border border = Border::kBlack;

  /// What follows sees the image moved by so many pixels, against their direction.
  void shift(int rows, int columns);
  /// What follows sees the image mirrored.
  void mirror();
  bool is_identity() const { return top == 0 && left == 0 && step == 1; }
};

/// Carries out a plan: `out` takes height x width x channels bytes. `source` must not overlap it.
void move_pixels(const MovePlan& plan, int channels, const uint8_t* source, uint8_t* out);

/// One random change of the training images. A pure function of its arguments.
class Augmentation {
 public:
  virtual ~Augmentation() = default;

  /// Throws UsageError where images of this size cannot be treated so.
  virtual void check(int /*height*/, int /*width*/) const {}
  /// Adds to the plan.
  virtual void plan(const SampleKey& /*key*/, Philox& /*random*/, MovePlan& /*plan*/) const {}

  /// Whether it cuts a part out of the original image to be resized; then it is the first of a
  /// list.
  virtual bool cuts() const { return false; }
  /// The part of an original of this size.
  virtual Region cut(int height, int width, Philox& /*random*/) const {
    return {.height = height, .width = width};
  }
};

/// Augmentations by name.
using AugmentationRegistry = config::Registry<Augmentation>;
AugmentationRegistry built_in_augmentations();

/// Builds a list. Throws UsageError where a member is named twice or one that cuts is not the
/// first.
std::vector<std::unique_ptr<Augmentation>> build_augmentations(const AugmentationRegistry& registry,
                                                               const config::ComponentList& list);

}  // namespace gallop::data
