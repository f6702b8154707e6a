#pragma once

#include <memory>

#include "gallop/config/visitor.h"
#include "gallop/data/batch_transform.h"

namespace gallop::data {

/// Adds Gaussian noise to the input, like torchvision's v2.GaussianNoise. `sigma` is relative to
/// normalized inputs, whose standard deviation is 1.
struct GaussianNoiseConfig {
  double mean = 0;
  double sigma = 0.1;
};

void visit(config::Visitor& visitor, GaussianNoiseConfig& config);
/// Throws UsageError if the input is not floating-point.
std::unique_ptr<BatchTransform> make_gaussian_noise(const GaussianNoiseConfig& config);

/// Sets pixels of images, with all their channels, or elements of other inputs to a value, each
/// with probability `p`, like albumentations' PixelDropout. `value` is relative to normalized
/// inputs: 0 is their mean.
struct PixelDropoutConfig {
  double p = 0.05;
  double value = 0;
};

void visit(config::Visitor& visitor, PixelDropoutConfig& config);
/// Throws UsageError if the input is not floating-point.
std::unique_ptr<BatchTransform> make_pixel_dropout(const PixelDropoutConfig& config);

}  // namespace gallop::data
