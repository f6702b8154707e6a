#pragma once

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "gallop/data/augment.h"

namespace gallop::data {

/// The operations of torchvision's automatic augmentations, in the order in which it draws them.
enum class PolicyOperation {
  kIdentity,
  kShearX,
  kShearY,
  kTranslateX,
  kTranslateY,
  kRotate,
  kBrightness,
  kColor,
  kContrast,
  kSharpness,
  kPosterize,
  kSolarize,
  kAutoContrast,
  kEqualize,
  kInvert,
};

/// torchvision's name, "ShearX".
std::string_view name_of(PolicyOperation operation);

enum class Policy { kRandAugment, kTrivialAugmentWide, kAutoAugment, kAugMix };

/// The operations among which a policy draws.
std::span<const PolicyOperation> operations_of(Policy policy);

/// The magnitude of a bin, of `bins` (at least 2), as torchvision computes it in single precision:
/// lengths in pixels, angles in degrees, slopes of shears, factors less 1, bits, and thresholds as
/// fractions. Nothing for operations without one.
std::optional<float> magnitude_of(Policy policy, PolicyOperation operation, int bin, int bins,
                                  const ImageShape& shape);

/// Whether the magnitude is negated half of the time.
bool is_signed(PolicyOperation operation);

/// The options of warps.
struct WarpOptions {
  pixels::Interpolation interpolation = pixels::Interpolation::kNearest;
  std::vector<double> fill;
};

/// Appends the operation; nothing for the identity.
void append_operation(PolicyOperation operation, double magnitude, const ImageShape& shape,
                      const WarpOptions& options, std::vector<pixels::Operation>& operations);

/// One operation of a pair of AutoAugment, applied with a probability of `tenths` / 10.
struct PolicyStep {
  PolicyOperation operation;
  int tenths;
  int bin;  ///< Of 10; -1 for operations without magnitude.
};
using PolicyPair = std::array<PolicyStep, 2>;

/// The 25 pairs that AutoAugment (Cubuk et al., 2019) found for "imagenet", "cifar10" or "svhn".
std::span<const PolicyPair> auto_augment_pairs(std::string_view data);

}  // namespace gallop::data
