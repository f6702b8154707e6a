#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include "gallop/data/data_config.h"
#include "gallop/data/data_module.h"
#include "unit/data/format_files.h"
#include "unit/data/image_fields.h"

namespace gallop::data {

/// Tests that open texts in files of a folder, as a recipe does.
class TextFiles : public testing::Test {
 protected:
  DataContext context() const {
    return {.config = config, .augmentations = augmentations, .options = options};
  }

  const TestFolder folder;
  OpenOptions options{.cores = 1, .cache_folder = folder.path() / "cache"};
  const DataModuleRegistry modules = built_in_data_modules();
  const AugmentationRegistry augmentations = built_in_augmentations();
  const BatchTransformRegistry batch_transforms = built_in_batch_transforms();
  DataConfig config{modules, augmentations, batch_transforms};
};

/// A text with its label.
struct LabeledRow {
  std::vector<int64_t> tokens;
  int64_t label = -1;
};

/// Of samples whose fields are ragged tokens and a label.
inline LabeledRow row_of(const Samples& samples, int64_t index) {
  LabeledRow row;
  row.tokens.resize(static_cast<size_t>(samples.fields().input().shape.sizes[0]));
  void* const rows[] = {row.tokens.data(), &row.label};
  int64_t lengths[] = {-1, -1};
  const auto scratch = samples.make_scratch();
  EXPECT_TRUE(samples.fill(index, 0, SampleRow(rows, lengths), *scratch));
  EXPECT_GE(lengths[0], 0);
  row.tokens.resize(static_cast<size_t>(lengths[0]));
  return row;
}

inline std::vector<std::string> vocabulary_of(const Signature& signature) {
  std::vector<std::string> tokens;
  for (const std::string& token : signature.vocabulary) tokens.push_back(from_hex(token));
  return tokens;
}

inline std::vector<int64_t> values_of(const at::Tensor& tensor) {
  const at::Tensor all = tensor.contiguous();
  return {all.const_data_ptr<int64_t>(), all.const_data_ptr<int64_t>() + all.numel()};
}

}  // namespace gallop::data
