#include "gallop/data/augmentations/timm_space.h"

#include <algorithm>
#include <cmath>

#include "gallop/base/error.h"
#include "gallop/data/draw.h"

namespace gallop::data {

namespace {

using enum TimmOperation;

// Policies "original" and "v0"; "originalr" and "v0r" have another kind of posterizing.
std::vector<TimmGroup> original_groups() {
  return {
      {{kPosterizeOriginal, 4, 8}, {kRotate, 6, 9}},
      {{kSolarize, 6, 5}, {kAutoContrast, 6, 5}},
      {{kEqualize, 8, 8}, {kEqualize, 6, 3}},
      {{kPosterizeOriginal, 6, 7}, {kPosterizeOriginal, 6, 6}},
      {{kEqualize, 4, 7}, {kSolarize, 2, 4}},
      {{kEqualize, 4, 4}, {kRotate, 8, 8}},
      {{kSolarize, 6, 3}, {kEqualize, 6, 7}},
      {{kPosterizeOriginal, 8, 5}, {kEqualize, 10, 2}},
      {{kRotate, 2, 3}, {kSolarize, 6, 8}},
      {{kEqualize, 6, 8}, {kPosterizeOriginal, 4, 6}},
      {{kRotate, 8, 8}, {kColor, 4, 0}},
      {{kRotate, 4, 9}, {kEqualize, 6, 2}},
      {{kEqualize, 0, 7}, {kEqualize, 8, 8}},
      {{kInvert, 6, 4}, {kEqualize, 10, 8}},
      {{kColor, 6, 4}, {kContrast, 10, 8}},
      {{kRotate, 8, 8}, {kColor, 10, 2}},
      {{kColor, 8, 8}, {kSolarize, 8, 7}},
      {{kSharpness, 4, 7}, {kInvert, 6, 8}},
      {{kShearX, 6, 5}, {kEqualize, 10, 9}},
      {{kColor, 4, 0}, {kEqualize, 6, 3}},
      {{kEqualize, 4, 7}, {kSolarize, 2, 4}},
      {{kSolarize, 6, 5}, {kAutoContrast, 6, 5}},
      {{kInvert, 6, 4}, {kEqualize, 10, 8}},
      {{kColor, 6, 4}, {kContrast, 10, 8}},
      {{kEqualize, 8, 8}, {kEqualize, 6, 3}},
  };
}

std::vector<TimmGroup> v0_groups() {
  return {
      {{kEqualize, 8, 1}, {kShearY, 8, 4}},        {{kColor, 4, 9}, {kEqualize, 6, 3}},
      {{kColor, 4, 1}, {kRotate, 6, 8}},           {{kSolarize, 8, 3}, {kEqualize, 4, 7}},
      {{kSolarize, 4, 2}, {kSolarize, 6, 2}},      {{kColor, 2, 0}, {kEqualize, 8, 8}},
      {{kEqualize, 4, 8}, {kSolarizeAdd, 8, 3}},   {{kShearX, 2, 9}, {kRotate, 6, 8}},
      {{kColor, 6, 1}, {kEqualize, 10, 2}},        {{kInvert, 4, 9}, {kRotate, 6, 0}},
      {{kEqualize, 10, 9}, {kShearY, 6, 3}},       {{kColor, 4, 7}, {kEqualize, 6, 0}},
      {{kPosterize, 4, 6}, {kAutoContrast, 4, 7}}, {{kSolarize, 6, 8}, {kColor, 6, 9}},
      {{kSolarize, 2, 4}, {kRotate, 8, 9}},        {{kRotate, 10, 7}, {kTranslateYRel, 8, 9}},
      {{kShearX, 0, 0}, {kSolarize, 8, 4}},        {{kShearY, 8, 0}, {kColor, 6, 4}},
      {{kColor, 10, 0}, {kRotate, 6, 2}},          {{kEqualize, 8, 4}, {kEqualize, 0, 8}},
      {{kEqualize, 10, 4}, {kAutoContrast, 6, 2}}, {{kShearY, 4, 7}, {kSolarizeAdd, 6, 7}},
      {{kPosterize, 8, 2}, {kSolarize, 6, 10}},    {{kSolarize, 6, 8}, {kEqualize, 6, 1}},
      {{kColor, 8, 6}, {kRotate, 4, 5}},
  };
}

std::vector<TimmGroup> increasing(std::vector<TimmGroup> groups, TimmOperation posterize) {
  for (TimmGroup& group : groups) {
    for (TimmStep& step : group) {
      if (step.operation == posterize) step.operation = kPosterizeIncreasing;
    }
  }
  return groups;
}

constexpr std::array kRandOperations = {kAutoContrast, kEqualize,      kInvert,       kRotate,
                                        kPosterize,    kSolarize,      kSolarizeAdd,  kColor,
                                        kContrast,     kBrightness,    kSharpness,    kShearX,
                                        kShearY,       kTranslateXRel, kTranslateYRel};
constexpr std::array kIncreasingOperations = {kAutoContrast,
                                              kEqualize,
                                              kInvert,
                                              kRotate,
                                              kPosterizeIncreasing,
                                              kSolarizeIncreasing,
                                              kSolarizeAdd,
                                              kColorIncreasing,
                                              kContrastIncreasing,
                                              kBrightnessIncreasing,
                                              kSharpnessIncreasing,
                                              kShearX,
                                              kShearY,
                                              kTranslateXRel,
                                              kTranslateYRel};
constexpr std::array kAugMixOperations = {kAutoContrast,
                                          kColorIncreasing,
                                          kContrastIncreasing,
                                          kBrightnessIncreasing,
                                          kSharpnessIncreasing,
                                          kEqualize,
                                          kRotate,
                                          kPosterizeIncreasing,
                                          kSolarizeIncreasing,
                                          kShearX,
                                          kShearY,
                                          kTranslateXRel,
                                          kTranslateYRel};

std::vector<TimmChoice> equal_choices(std::span<const TimmOperation> operations) {
  std::vector<TimmChoice> choices;
  for (const TimmOperation operation : operations) choices.push_back({operation, 1});
  return choices;
}

bool is_negated(TimmOperation operation) {
  switch (operation) {
    case kRotate:
    case kColorIncreasing:
    case kContrastIncreasing:
    case kBrightnessIncreasing:
    case kSharpnessIncreasing:
    case kShearX:
    case kShearY:
    case kTranslateXRel:
    case kTranslateYRel: return true;
    default: return false;
  }
}

// By pixels that need not be whole, as in Pillow.
pixels::Operation translation(double x, double y, const ImageShape& shape,
                              const WarpOptions& options) {
  const pixels::AffineParameters affine{.translate = {x, y}};
  return pixels::Warp{.matrix = pixels::affine_matrix(affine, shape.height, shape.width),
                      .interpolation = options.interpolation,
                      .fill = options.fill};
}

// Wide enough for three standard deviations, as far as the image is.
pixels::Operation blur(double radius, const ImageShape& shape) {
  const int margin =
      std::min({static_cast<int>(std::ceil(3 * radius)), shape.height - 1, shape.width - 1});
  return pixels::GaussianBlur{.kernel_width = 2 * margin + 1,
                              .kernel_height = 2 * margin + 1,
                              .sigma_x = radius,
                              .sigma_y = radius};
}

}  // namespace

std::string_view name_of(TimmOperation operation) {
  constexpr std::array<std::string_view, 25> kNames = {"AutoContrast",
                                                       "Equalize",
                                                       "Invert",
                                                       "Rotate",
                                                       "Posterize",
                                                       "PosterizeIncreasing",
                                                       "PosterizeOriginal",
                                                       "Solarize",
                                                       "SolarizeIncreasing",
                                                       "SolarizeAdd",
                                                       "Color",
                                                       "ColorIncreasing",
                                                       "Contrast",
                                                       "ContrastIncreasing",
                                                       "Brightness",
                                                       "BrightnessIncreasing",
                                                       "Sharpness",
                                                       "SharpnessIncreasing",
                                                       "ShearX",
                                                       "ShearY",
                                                       "TranslateXRel",
                                                       "TranslateYRel",
                                                       "Desaturate",
                                                       "GaussianBlur",
                                                       "GaussianBlurRand"};
  return kNames[static_cast<size_t>(operation)];
}

double timm_argument(TimmOperation operation, double level, bool negated,
                     double translate_fraction) {
  const double part = level / 10, sign = negated ? -1 : 1;
  switch (operation) {
    case kAutoContrast:
    case kEqualize:
    case kInvert: return 0;
    case kRotate: return sign * part * 30;
    case kPosterize: return std::trunc(part * 4);
    case kPosterizeIncreasing: return 4 - std::trunc(part * 4);
    case kPosterizeOriginal: return std::trunc(part * 4) + 4;
    case kSolarize: return std::min(256.0, std::trunc(part * 256));
    case kSolarizeIncreasing: return 256 - std::min(256.0, std::trunc(part * 256));
    case kSolarizeAdd: return std::min(128.0, std::trunc(part * 110));
    case kColor:
    case kContrast:
    case kBrightness:
    case kSharpness: return part * 1.8 + 0.1;
    case kColorIncreasing:
    case kContrastIncreasing:
    case kBrightnessIncreasing:
    case kSharpnessIncreasing: return std::max(0.1, 1 + sign * (part * 0.9));
    case kShearX:
    case kShearY: return sign * part * 0.3;
    case kTranslateXRel:
    case kTranslateYRel: return sign * part * translate_fraction;
    case kDesaturate: return std::clamp(0.5 + (1.0 - 0.5) * part, 0.5, 1.0);
    case kGaussianBlur: return std::clamp(0.1 + (2.0 - 0.1) * part, 0.1, 2.0);
    case kGaussianBlurRand: return std::clamp(part, 0.0, 1.0);
  }
  throw InternalError("an unknown operation of timm");
}

void append_timm_operation(TimmOperation operation, double level, const ImageShape& shape,
                           const TimmOptions& options, Philox& random,
                           std::vector<pixels::Operation>& operations) {
  const bool negated = is_negated(operation) && random.coin();
  const double argument = timm_argument(operation, level, negated, options.translate_fraction);
  const auto append = [&](pixels::Operation one) { operations.push_back(std::move(one)); };
  const auto as_torchvision = [&](PolicyOperation one) {
    append_operation(one, argument, shape, options.warps, operations);
  };
  const int whole = static_cast<int>(argument);
  switch (operation) {
    case kAutoContrast: return append(pixels::AutoContrast{});
    case kEqualize: return append(pixels::Equalize{});
    case kInvert: return append(pixels::Invert{});
    case kRotate: return as_torchvision(PolicyOperation::kRotate);
    // Beyond level 10, bits would be negative.
    case kPosterize:
    case kPosterizeIncreasing:
    case kPosterizeOriginal: return append(pixels::Posterize{std::clamp(whole, 0, 8)});
    case kSolarize:
    case kSolarizeIncreasing: return append(pixels::Solarize{argument});
    case kSolarizeAdd: return append(pixels::SolarizeAdd{.addend = whole});
    case kColor:
    case kColorIncreasing: return append(pixels::Saturation{argument});
    case kContrast:
    case kContrastIncreasing: return append(pixels::Contrast{argument});
    case kBrightness:
    case kBrightnessIncreasing: return append(pixels::Brightness{argument});
    case kSharpness:
    case kSharpnessIncreasing: return append(pixels::Sharpness{argument});
    case kShearX: return as_torchvision(PolicyOperation::kShearX);
    case kShearY: return as_torchvision(PolicyOperation::kShearY);
    // Pillow moves the source, torchvision the output.
    case kTranslateXRel:
      return append(translation(-argument * shape.width, 0, shape, options.warps));
    case kTranslateYRel:
      return append(translation(0, -argument * shape.height, shape, options.warps));
    case kDesaturate: return append(pixels::Saturation{std::clamp(1 - argument, 0.0, 1.0)});
    case kGaussianBlur: return append(blur(argument, shape));
    case kGaussianBlurRand: return append(blur(draw_uniform(random, 0.1, 2 * argument), shape));
  }
  throw InternalError("an unknown operation of timm");
}

std::vector<TimmGroup> timm_groups(std::string_view policy) {
  if (policy == "original") return original_groups();
  if (policy == "originalr") return increasing(original_groups(), kPosterizeOriginal);
  if (policy == "v0") return v0_groups();
  if (policy == "v0r") return increasing(v0_groups(), kPosterize);
  if (policy == "3a")
    return {{{kSolarize, 10, 5}}, {{kDesaturate, 10, 10}}, {{kGaussianBlurRand, 10, 10}}};
  return {};
}

std::vector<TimmChoice> timm_choices(std::string_view set, bool increasing) {
  if (set.empty()) {
    return increasing ? equal_choices(kIncreasingOperations) : equal_choices(kRandOperations);
  }
  if (set == "weights") {
    return {{kRotate, 3},
            {kShearX, 2},
            {kShearY, 2},
            {kTranslateXRel, 1},
            {kTranslateYRel, 1},
            {kColorIncreasing, 0.25},
            {kSharpnessIncreasing, 0.25},
            {kAutoContrast, 0.25},
            {kSolarizeIncreasing, 0.05},
            {kSolarizeAdd, 0.05},
            {kContrastIncreasing, 0.05},
            {kBrightnessIncreasing, 0.05},
            {kEqualize, 0.05},
            {kPosterizeIncreasing, 0.05},
            {kInvert, 0.05}};
  }
  if (set == "3a") return {{kSolarizeIncreasing, 1}, {kDesaturate, 1}, {kGaussianBlur, 1}};
  if (set == "3aw") {
    return {{kSolarizeIncreasing, 6},
            {kDesaturate, 6},
            {kGaussianBlur, 6},
            {kRotate, 3},
            {kShearX, 2},
            {kShearY, 2},
            {kPosterizeIncreasing, 1},
            {kAutoContrast, 1},
            {kColorIncreasing, 1},
            {kSharpnessIncreasing, 1},
            {kContrastIncreasing, 1},
            {kBrightnessIncreasing, 1},
            {kEqualize, 1},
            {kInvert, 1}};
  }
  return {};
}

std::span<const TimmOperation> timm_augmix_operations() { return kAugMixOperations; }

}  // namespace gallop::data
