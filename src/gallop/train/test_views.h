#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "gallop/config/visitor.h"
#include "gallop/model/model.h"

namespace gallop::train {

/// The `evaluate:` section of a recipe.
struct TestConfig {
  std::vector<std::string> tta;  ///< Of "flip" and "translate".
  int64_t tta_pixels = 1;
  bool tta_in_training = false;
};

void visit(config::Visitor& visitor, TestConfig& config);

/// Throws UsageError for options that have no effect without others.
void check(const TestConfig& config);

/// The views of an image in test-time augmentation. Logits of all views are averaged, as in
/// airbench (Jordan, "94% on CIFAR-10 in 3.29 seconds on a single GPU", 2024).
struct TestViews {
  bool flip = false;   ///< Mirrored from left to right; half of the weight.
  int64_t pixels = 0;  ///< Shifted by this many pixels, up and left, and down and right; a quarter
                       ///< each.

  bool is_any() const { return flip || pixels > 0; }
};

/// Throws UsageError if the data are no images, or too small for the shift.
TestViews test_views(const TestConfig& config, const model::Task& task);

/// One view of images [N, C, H, W].
struct View {
  at::Tensor images;
  double weight = 1;
};

/// All views of images, the unmodified images first; weights add up to 1. Shifted images are
/// reflected at the edge.
std::vector<View> views_of(const at::Tensor& images, const TestViews& views);

}  // namespace gallop::train
