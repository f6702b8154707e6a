#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gallop/config/visitor.h"
#include "gallop/data/augment.h"

namespace gallop::data {

/// Rotation by a random angle, with the distribution and pixels of torchvision's v2.RandomRotation
/// with expand=False. Angles are in degrees, counterclockwise.
struct RandomRotationConfig {
  std::vector<double> degrees = {-10, 10};
  std::string interpolation = "nearest";
  std::vector<double> fill = {0};
  std::vector<double> center;
};

/// A random affine warp, with the distribution and pixels of torchvision's v2.RandomAffine.
struct RandomAffineConfig {
  std::vector<double> degrees = {-10, 10};
  std::vector<double> translate;
  std::vector<double> scale;
  std::vector<double> shear;
  std::string interpolation = "nearest";
  std::vector<double> fill = {0};
  std::vector<double> center;
};

/// A random perspective with probability `p`, with the distribution and pixels of torchvision's
/// v2.RandomPerspective: each corner moves inwards by up to `distortion_scale` of half the side.
struct RandomPerspectiveConfig {
  double distortion_scale = 0.5;
  double p = 0.5;
  std::string interpolation = "bilinear";
  std::vector<double> fill = {0};
};

void visit(config::Visitor& visitor, RandomRotationConfig& config);
void visit(config::Visitor& visitor, RandomAffineConfig& config);
void visit(config::Visitor& visitor, RandomPerspectiveConfig& config);

/// Throws UsageError for ranges that are none.
std::unique_ptr<Augmentation> make_random_rotation(const RandomRotationConfig& config);
std::unique_ptr<Augmentation> make_random_affine(const RandomAffineConfig& config);
std::unique_ptr<Augmentation> make_random_perspective(const RandomPerspectiveConfig& config);

/// The options `interpolation` and `fill` of warps.
void visit_fill(config::Visitor& visitor, std::vector<double>& fill, const char* help);
void visit_warp(config::Visitor& visitor, std::string& interpolation, std::vector<double>& fill);
pixels::Interpolation interpolation_of(const std::string& name);
/// Throws UsageError if images of this shape cannot be filled with these values.
void check_fill(const char* augmentation, const std::vector<double>& fill, const ImageShape& shape);
/// A range of two numbers in order, or of one as center - value to center + value. Throws
/// UsageError that names the option otherwise.
std::vector<double> range_of(const char* augmentation, const char* option,
                             const std::vector<double>& value, double center = 0);

}  // namespace gallop::data
