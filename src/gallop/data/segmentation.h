#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gallop/data/data_module.h"

namespace gallop::data {

/// Images with masks: PATH/train/images/NAME.jpg with PATH/train/masks/NAME.png, optionally with
/// validation and test folders; or PATH/images and PATH/masks. A mask is a gray or palette image
/// with the size of its image, whose values or palette indices are class indices.
struct SegmentationConfig {
  std::vector<std::string> classes;  ///< Names; empty: one class per value of the training masks.
  int64_t ignore_index = 255;        ///< Value of ignored pixels.
};

void visit(config::Visitor& visitor, SegmentationConfig& config);

/// Fields "image" [C, H, W], channels_last, and "mask" [H, W] int64 with kIgnoredTarget for ignored
/// pixels. Augmentations move a mask with its image. Throws DataError if an image has no mask or a
/// mask no image, and for damaged files.
std::unique_ptr<DataModule> open_segmentation(const SegmentationConfig& config,
                                              const DataContext& context);

}  // namespace gallop::data
