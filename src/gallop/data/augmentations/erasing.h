#pragma once

#include <memory>
#include <string>
#include <vector>

#include <c10/core/ScalarType.h>

#include "gallop/config/visitor.h"
#include "gallop/data/augment.h"

namespace gallop::data {

/// Random erasing (Zhong et al., 2017), with the distribution of torchvision's v2.RandomErasing: a
/// rectangle of a random fraction `scale` of the normalized image and a random aspect ratio `ratio`
/// is overwritten with a number, 0 being the mean of the data, or each value with a normal number.
struct RandomErasingConfig {
  double p = 0.5;
  std::vector<double> scale = {0.02, 0.33};
  std::vector<double> ratio = {0.3, 3.3};
  std::string value = "0";
};

/// Cutout (DeVries and Taylor, 2017): squares, centered at random places of the image, are
/// overwritten with the mean of the data. `length` is their side as a fraction of the image's
/// shorter side, as in Composer.
struct CutoutConfig {
  double length = 0.5;
  int64_t num_holes = 1;
};

void visit(config::Visitor& visitor, RandomErasingConfig& config);
void visit(config::Visitor& visitor, CutoutConfig& config);

/// Throws UsageError for ranges that are none.
std::unique_ptr<Augmentation> make_random_erasing(const RandomErasingConfig& config);
std::unique_ptr<Augmentation> make_cutout(const CutoutConfig& config);

/// Overwrites a rectangle of a normalized image [H, W, C], float32 or bfloat16.
void erase(const Erasing& erasing, const ImageShape& shape, c10::ScalarType dtype, void* image);

}  // namespace gallop::data
