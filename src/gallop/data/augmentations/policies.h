#pragma once

#include <memory>
#include <string>
#include <vector>

#include "gallop/config/visitor.h"
#include "gallop/data/augment.h"

/// Automatic augmentations with the options, defaults, distributions and pixels of torchvision
/// 0.26.
namespace gallop::data {

/// RandAugment (Cubuk et al., 2020): `num_ops` random operations, each at `magnitude` of
/// `num_magnitude_bins`.
struct RandAugmentConfig {
  int64_t num_ops = 2;
  int64_t magnitude = 9;
  int64_t num_magnitude_bins = 31;
  std::string interpolation = "nearest";
  std::vector<double> fill;
};

/// TrivialAugment with its wide ranges (Müller and Hutter, 2021): one random operation of random
/// magnitude.
struct TrivialAugmentWideConfig {
  int64_t num_magnitude_bins = 31;
  std::string interpolation = "nearest";
  std::vector<double> fill;
};

/// AutoAugment (Cubuk et al., 2019): one of the 25 pairs of operations that were found for a data
/// set; or an automatic augmentation of timm by its name there (timm_policies.h).
struct AutoAugmentConfig {
  std::string policy = "imagenet";
  std::string interpolation = "auto";
  std::vector<double> fill;
};

/// AugMix (Hendrycks et al., 2020): a weighted sum of the image and of `mixture_width` chains of
/// operations on it.
struct AugMixConfig {
  int64_t severity = 3;
  int64_t mixture_width = 3;
  int64_t chain_depth = -1;
  double alpha = 1;
  bool all_ops = true;
  std::string interpolation = "bilinear";
  std::vector<double> fill;
};

void visit(config::Visitor& visitor, RandAugmentConfig& config);
void visit(config::Visitor& visitor, TrivialAugmentWideConfig& config);
void visit(config::Visitor& visitor, AutoAugmentConfig& config);
void visit(config::Visitor& visitor, AugMixConfig& config);

/// Throws UsageError if the magnitude is not below the number of bins.
std::unique_ptr<Augmentation> make_rand_augment(const RandAugmentConfig& config);
std::unique_ptr<Augmentation> make_trivial_augment_wide(const TrivialAugmentWideConfig& config);
std::unique_ptr<Augmentation> make_auto_augment(const AutoAugmentConfig& config);
std::unique_ptr<Augmentation> make_aug_mix(const AugMixConfig& config);

}  // namespace gallop::data
