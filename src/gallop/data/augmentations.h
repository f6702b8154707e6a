#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gallop/config/visitor.h"
#include "gallop/data/augment.h"

namespace gallop::data {

/// Random horizontal flip. "random" flips each image with probability 1/2 in every epoch;
/// "alternating" (Jordan, "94% on CIFAR-10 in 3.29 seconds on a single GPU", 2024) draws at random
/// in the first epoch and then flips each image in every other epoch.
struct FlipConfig {
  std::string mode = "random";
};

/// Random crop: pads all sides by `padding` pixels and crops to the image's size at random.
struct CropConfig {
  int64_t padding = 4;
  std::string mode = "zero";
};

/// Random resized crop (Szegedy et al., "Going deeper with convolutions", 2015), with the
/// distribution of torchvision's RandomResizedCrop.
struct RandomResizedCropConfig {
  std::vector<double> scale = {0.08, 1};
  std::vector<double> ratio = {0.75, 1.3333333333333333};
};

void visit(config::Visitor& visitor, FlipConfig& config);
void visit(config::Visitor& visitor, CropConfig& config);
void visit(config::Visitor& visitor, RandomResizedCropConfig& config);

std::unique_ptr<Augmentation> make_flip(const FlipConfig& config);
std::unique_ptr<Augmentation> make_crop(const CropConfig& config);
std::unique_ptr<Augmentation> make_random_resized_crop(const RandomResizedCropConfig& config);

}  // namespace gallop::data
