#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gallop/base/named_files.h"
#include "gallop/data/data_module.h"
#include "gallop/data/dataset.h"
#include "gallop/data/normalize.h"

namespace gallop::data {

/// The normalization that the config selects: its own, ImageNet's, or that of these images, which
/// is cached under `identity()`.
Normalization normalization_of(const DataConfig& config, const ImageSet& images,
                               const ImageShape& shape,
                               const std::function<std::string()>& identity,
                               const OpenOptions& options);

/// The data module of image classification: resizes, caches, normalizes and augments images as the
/// recipe's section `data` says. Throws UsageError if the options do not fit.
/// `groups` has the group of each training image if `data.group` names a column of a table;
/// `named_files` are those of DataModule::named_files().
std::unique_ptr<DataModule> make_image_module(std::unique_ptr<ImageParts> parts,
                                              const DataContext& context,
                                              const std::vector<std::string>& groups = {},
                                              std::vector<NamedFiles> named_files = {});

}  // namespace gallop::data
