#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include "gallop/data/samples.h"
#include "unit/data/image_fields.h"

namespace gallop::data {

/// A text with its label.
struct LabeledRow {
  std::vector<int64_t> tokens;
  int64_t label = -1;
};

/// Reads samples whose fields are ragged tokens and a label.
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

inline std::vector<int64_t> values_of(const at::Tensor& tensor) {
  const at::Tensor all = tensor.contiguous();
  return {all.const_data_ptr<int64_t>(), all.const_data_ptr<int64_t>() + all.numel()};
}

}  // namespace gallop::data
