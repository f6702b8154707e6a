#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gallop/data/data_module.h"

namespace gallop::data {

/// Images and their masks: PATH/train/images/NAME.jpg with PATH/train/masks/NAME.png, and
/// validation and test beside train where they exist; or PATH/images and PATH/masks. A mask is a
/// gray PNG of its image's size whose values are class indices.
struct SegmentationConfig {
  std::vector<std::string> classes;  ///< Names; empty: as many as the training masks have values.
  int64_t ignore_index = 255;        ///< Value of pixels that do not count.
};

void visit(config::Visitor& visitor, SegmentationConfig& config);

/// Fields "image" [C, H, W], channels last, and "mask" [H, W] int64 with kIgnoredTarget for pixels
/// that do not count. Augmentations move a mask as its image. Throws DataError where an image has
/// no mask or the other way round, and for damaged files.
std::unique_ptr<DataModule> open_segmentation(const SegmentationConfig& config,
                                              const DataContext& context);

}  // namespace gallop::data
