#pragma once

#include <memory>

#include "gallop/data/data_module.h"
#include "gallop/data/dataset.h"

namespace gallop::data {

/// The data module of images in classes: resizes, caches, normalizes and augments them as the
/// recipe's section `data` says. Throws UsageError where it cannot.
std::unique_ptr<DataModule> make_image_module(std::unique_ptr<ImageParts> parts,
                                              const DataContext& context);

}  // namespace gallop::data
