#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/data/augmentations.h"
#include "gallop/data/augmentations/blur.h"
#include "gallop/data/augmentations/color.h"
#include "gallop/data/augmentations/erasing.h"
#include "gallop/data/augmentations/policies.h"
#include "gallop/data/augmentations/warps.h"

namespace gallop::data {

AugmentationRegistry built_in_augmentations() {
  AugmentationRegistry registry("augmentation");
  registry.add("random-horizontal-flip", "mirror left and right", make_flip)
      .add("random-crop", "pad, then cut the same size out at a random place", make_crop)
      .add("random-resized-crop", "cut out a random part and resize it", make_random_resized_crop)
      .add("rand-augment", "RandAugment: random operations of one magnitude", make_rand_augment)
      .add("trivial-augment-wide", "TrivialAugment: one random operation of random magnitude",
           make_trivial_augment_wide)
      .add("auto-augment", "AutoAugment: pairs of operations found for a data set",
           make_auto_augment)
      .add("aug-mix", "AugMix: a random mixture of the image and chains of operations",
           make_aug_mix)
      .add("color-jitter", "change brightness, contrast, saturation and hue at random",
           make_color_jitter)
      .add("random-grayscale", "convert to gray with a probability", make_random_grayscale)
      .add("random-rotation", "rotate by a random angle", make_random_rotation)
      .add("random-affine", "rotate, translate, scale and shear at random", make_random_affine)
      .add("random-perspective", "move the corners inwards at random", make_random_perspective)
      .add("gaussian-blur", "blur by a Gaussian of random width", make_gaussian_blur)
      .add("random-erasing", "overwrite a random rectangle of the normalized image",
           make_random_erasing)
      .add("cutout", "overwrite random squares of the normalized image with its mean", make_cutout);
  return registry;
}

namespace {

const char* what_it_works_on(AugmentStage stage) {
  switch (stage) {
    case AugmentStage::kCut: return "crops the original image";
    case AugmentStage::kMove: return "moves whole pixels";
    case AugmentStage::kPixels: return "changes values of pixels";
    case AugmentStage::kErasing: return "works on the normalized image";
  }
  throw InternalError("an unknown stage of augmentation");
}

}  // namespace

std::vector<std::unique_ptr<Augmentation>> build_augmentations(const AugmentationRegistry& registry,
                                                               const config::ComponentList& list) {
  std::vector<std::unique_ptr<Augmentation>> built;
  for (size_t i = 0; i < list.items.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (list.items[j].name() != list.items[i].name()) continue;
      throw UsageError(fmt::format("augmentation '{}' is listed twice", list.items[i].name()));
    }
    built.push_back(registry.build(list.items[i]));
    if (i == 0) continue;
    if (built[i]->cuts() && built[i - 1]->cuts()) {
      throw UsageError(fmt::format("augmentations '{}' and '{}' both crop the original image",
                                   list.items[i - 1].name(), list.items[i].name()));
    }
    if (built[i]->stage() >= built[i - 1]->stage()) continue;
    throw UsageError(fmt::format("augmentation '{}' {} and must come before '{}', which {}",
                                 list.items[i].name(), what_it_works_on(built[i]->stage()),
                                 list.items[i - 1].name(),
                                 what_it_works_on(built[i - 1]->stage())));
  }
  return built;
}

}  // namespace gallop::data
