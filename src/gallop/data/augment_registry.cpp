#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/data/augmentations.h"

namespace gallop::data {

AugmentationRegistry built_in_augmentations() {
  AugmentationRegistry registry("augmentation");
  registry.add("random-horizontal-flip", "mirror left and right", make_flip)
      .add("random-crop", "pad, then cut the same size out at a random place", make_crop)
      .add("random-resized-crop", "cut out a random part and resize it", make_random_resized_crop);
  return registry;
}

std::vector<std::unique_ptr<Augmentation>> build_augmentations(const AugmentationRegistry& registry,
                                                               const config::ComponentList& list) {
  std::vector<std::unique_ptr<Augmentation>> built;
  for (size_t i = 0; i < list.items.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (list.items[j].name() != list.items[i].name()) continue;
      throw UsageError(fmt::format("augmentation '{}' is listed twice", list.items[i].name()));
    }
    built.push_back(registry.build(list.items[i]));
    if (i > 0 && built.back()->cuts()) {
      throw UsageError(
          fmt::format("augmentation '{}' works on the original image; put it first in the list",
                      list.items[i].name()));
    }
  }
  return built;
}

}  // namespace gallop::data
