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

void visit(config::Visitor& visitor, RandomRotationConfig& config);
void visit(config::Visitor& visitor, RandomAffineConfig& config);

/// Throws UsageError for ranges that are none.
std::unique_ptr<Augmentation> make_random_rotation(const RandomRotationConfig& config);
std::unique_ptr<Augmentation> make_random_affine(const RandomAffineConfig& config);

/// The options `interpolation` and `fill` of warps.
void visit_warp(config::Visitor& visitor, std::string& interpolation, std::vector<double>& fill);
pixels::Interpolation interpolation_of(const std::string& name);
/// Throws UsageError if images of this shape cannot be filled with these values.
void check_fill(const char* augmentation, const std::vector<double>& fill, const ImageShape& shape);
/// A range of two numbers in order, or of one as center - value to center + value. Throws
/// UsageError that names the option otherwise.
std::vector<double> range_of(const char* augmentation, const char* option,
                             const std::vector<double>& value, double center = 0);

}  // namespace gallop::data
