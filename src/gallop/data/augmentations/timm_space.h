#pragma once

#include <array>
#include <span>
#include <string_view>
#include <vector>

#include "gallop/data/augmentations/policy_space.h"

namespace gallop::data {

/// The operations of timm 1.0's automatic augmentations (timm/data/auto_augment.py), which have
/// other ranges than torchvision's.
enum class TimmOperation {
  kAutoContrast,
  kEqualize,
  kInvert,
  kRotate,
  kPosterize,
  kPosterizeIncreasing,
  kPosterizeOriginal,
  kSolarize,
  kSolarizeIncreasing,
  kSolarizeAdd,
  kColor,
  kColorIncreasing,
  kContrast,
  kContrastIncreasing,
  kBrightness,
  kBrightnessIncreasing,
  kSharpness,
  kSharpnessIncreasing,
  kShearX,
  kShearY,
  kTranslateXRel,
  kTranslateYRel,
  kDesaturate,
  kGaussianBlur,
  kGaussianBlurRand,
};

/// timm's name, "PosterizeIncreasing".
std::string_view name_of(TimmOperation operation);

/// The argument of an operation at a level, whose scale is 0 to 10: degrees, bits, thresholds,
/// additions, factors, slopes, fractions of the side and radii. `negated` has an effect on
/// operations whose level is negated half of the time. 0 for operations without argument.
double timm_argument(TimmOperation operation, double level, bool negated,
                     double translate_fraction);

/// How timm's operations are done.
struct TimmOptions {
  WarpOptions warps;
  double translate_fraction = 0.45;  ///< The translation of level 10, as a fraction of the side.
};

/// Appends the operation at a level, with random sign.
void append_timm_operation(TimmOperation operation, double level, const ImageShape& shape,
                           const TimmOptions& options, Philox& random,
                           std::vector<pixels::Operation>& operations);

/// One operation of a group of an AutoAugment policy.
struct TimmStep {
  TimmOperation operation;
  int tenths;  ///< Its probability, times 10.
  int level;
};
using TimmGroup = std::vector<TimmStep>;

/// The groups of timm's AutoAugment policies "original", "originalr", "v0", "v0r" and "3a"; empty
/// for other names.
std::vector<TimmGroup> timm_groups(std::string_view policy);

struct TimmChoice {
  TimmOperation operation;
  double weight;
};

/// The operations of RandAugment, with equal weights, or of the sets "weights", "3a" and "3aw";
/// empty for other names.
std::vector<TimmChoice> timm_choices(std::string_view set, bool increasing);

/// The operations of AugMix.
std::span<const TimmOperation> timm_augmix_operations();

}  // namespace gallop::data
