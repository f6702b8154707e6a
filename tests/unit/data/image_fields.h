#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "gallop/data/samples.h"

namespace gallop::data {

/// The fields of samples that are images of these sizes with a label.
inline Fields image_fields(std::vector<int64_t> sizes,
                           c10::ScalarType dtype = c10::ScalarType::Float) {
  return {{.name = "image", .shape = {.sizes = std::move(sizes), .dtype = dtype}},
          {.name = "label", .shape = {.dtype = c10::ScalarType::Long}}};
}

/// Writes a sample with two fields to the given buffers.
inline bool fill_row(const Samples& samples, int64_t index, int64_t epoch, void* input,
                     void* target) {
  void* const rows[] = {input, target};
  int64_t lengths[] = {0, 0};
  const auto scratch = samples.make_scratch();
  return samples.fill(index, epoch, SampleRow(rows, lengths), *scratch);
}

}  // namespace gallop::data
