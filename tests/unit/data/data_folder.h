#pragma once

#include <gtest/gtest.h>

#include "gallop/data/data_config.h"
#include "gallop/data/data_module.h"
#include "unit/data/format_files.h"

namespace gallop::data {

/// A fixture that opens data from files in a folder, as a recipe does.
class DataFolder : public testing::Test {
 protected:
  DataContext context() const { return context_of(config); }
  DataContext context_of(const DataConfig& own) const {
    return {.config = own, .augmentations = augmentations, .options = options};
  }

  const TestFolder folder;
  OpenOptions options{.cores = 1, .cache_folder = folder.path() / "cache"};
  const DataModuleRegistry modules = built_in_data_modules();
  const AugmentationRegistry augmentations = built_in_augmentations();
  const BatchTransformRegistry batch_transforms = built_in_batch_transforms();
  DataConfig config{modules, augmentations, batch_transforms};
};

}  // namespace gallop::data
