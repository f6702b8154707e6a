#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gallop/data/data_module.h"
#include "gallop/data/dataset.h"
#include "gallop/data/normalize.h"

namespace gallop::data {

/// As the config says: its own, those of ImageNet, or those of these images, which are kept in a
/// cache under `identity()`.
Normalization normalization_of(const DataConfig& config, const ImageSet& images,
                               const ImageShape& shape,
                               const std::function<std::string()>& identity,
                               const OpenOptions& options);

/// The data module of images in classes: resizes, caches, normalizes and augments them as the
/// recipe's section `data` says. Throws UsageError where it cannot.
std::unique_ptr<DataModule> make_image_module(std::unique_ptr<ImageParts> parts,
                                              const DataContext& context);

}  // namespace gallop::data
