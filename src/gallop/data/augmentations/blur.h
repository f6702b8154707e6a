#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "gallop/config/visitor.h"
#include "gallop/data/augment.h"

namespace gallop::data {

/// Blurs each image by a Gaussian of random standard deviation, with the distribution and pixels of
/// torchvision's v2.GaussianBlur. `kernel_size` is one odd number, or width and height.
struct GaussianBlurConfig {
  std::vector<int64_t> kernel_size;
  std::vector<double> sigma = {0.1, 2};
};

void visit(config::Visitor& visitor, GaussianBlurConfig& config);

/// Throws UsageError for sizes that are not odd, and for a range that is none.
std::unique_ptr<Augmentation> make_gaussian_blur(const GaussianBlurConfig& config);

}  // namespace gallop::data
