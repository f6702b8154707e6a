#include "gallop/data/augmentations/policy_space.h"

#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/data/pixels/linspace.h"

namespace gallop::data {

namespace {

using enum PolicyOperation;
using pixels::linspace;

constexpr std::array kRandAugmentOperations = {
    kIdentity, kShearX,   kShearY,    kTranslateX, kTranslateY, kRotate,       kBrightness,
    kColor,    kContrast, kSharpness, kPosterize,  kSolarize,   kAutoContrast, kEqualize};
constexpr std::array kAutoAugmentOperations = {
    kShearX,   kShearY,    kTranslateX, kTranslateY, kRotate,       kBrightness, kColor,
    kContrast, kSharpness, kPosterize,  kSolarize,   kAutoContrast, kEqualize,   kInvert};
// The last four are left out with all_ops: false.
constexpr std::array kAugMixOperations = {
    kShearX,       kShearY,   kTranslateX, kTranslateY, kRotate,   kPosterize, kSolarize,
    kAutoContrast, kEqualize, kBrightness, kColor,      kContrast, kSharpness};

constexpr std::array<PolicyPair, 25> kImageNet = {{
    {{{kPosterize, 4, 8}, {kRotate, 6, 9}}},    {{{kSolarize, 6, 5}, {kAutoContrast, 6, -1}}},
    {{{kEqualize, 8, -1}, {kEqualize, 6, -1}}}, {{{kPosterize, 6, 7}, {kPosterize, 6, 6}}},
    {{{kEqualize, 4, -1}, {kSolarize, 2, 4}}},  {{{kEqualize, 4, -1}, {kRotate, 8, 8}}},
    {{{kSolarize, 6, 3}, {kEqualize, 6, -1}}},  {{{kPosterize, 8, 5}, {kEqualize, 10, -1}}},
    {{{kRotate, 2, 3}, {kSolarize, 6, 8}}},     {{{kEqualize, 6, -1}, {kPosterize, 4, 6}}},
    {{{kRotate, 8, 8}, {kColor, 4, 0}}},        {{{kRotate, 4, 9}, {kEqualize, 6, -1}}},
    {{{kEqualize, 0, -1}, {kEqualize, 8, -1}}}, {{{kInvert, 6, -1}, {kEqualize, 10, -1}}},
    {{{kColor, 6, 4}, {kContrast, 10, 8}}},     {{{kRotate, 8, 8}, {kColor, 10, 2}}},
    {{{kColor, 8, 8}, {kSolarize, 8, 7}}},      {{{kSharpness, 4, 7}, {kInvert, 6, -1}}},
    {{{kShearX, 6, 5}, {kEqualize, 10, -1}}},   {{{kColor, 4, 0}, {kEqualize, 6, -1}}},
    {{{kEqualize, 4, -1}, {kSolarize, 2, 4}}},  {{{kSolarize, 6, 5}, {kAutoContrast, 6, -1}}},
    {{{kInvert, 6, -1}, {kEqualize, 10, -1}}},  {{{kColor, 6, 4}, {kContrast, 10, 8}}},
    {{{kEqualize, 8, -1}, {kEqualize, 6, -1}}},
}};

constexpr std::array<PolicyPair, 25> kCifar10 = {{
    {{{kInvert, 1, -1}, {kContrast, 2, 6}}},         {{{kRotate, 7, 2}, {kTranslateX, 3, 9}}},
    {{{kSharpness, 8, 1}, {kSharpness, 9, 3}}},      {{{kShearY, 5, 8}, {kTranslateY, 7, 9}}},
    {{{kAutoContrast, 5, -1}, {kEqualize, 9, -1}}},  {{{kShearY, 2, 7}, {kPosterize, 3, 7}}},
    {{{kColor, 4, 3}, {kBrightness, 6, 7}}},         {{{kSharpness, 3, 9}, {kBrightness, 7, 9}}},
    {{{kEqualize, 6, -1}, {kEqualize, 5, -1}}},      {{{kContrast, 6, 7}, {kSharpness, 6, 5}}},
    {{{kColor, 7, 7}, {kTranslateX, 5, 8}}},         {{{kEqualize, 3, -1}, {kAutoContrast, 4, -1}}},
    {{{kTranslateY, 4, 3}, {kSharpness, 2, 6}}},     {{{kBrightness, 9, 6}, {kColor, 2, 8}}},
    {{{kSolarize, 5, 2}, {kInvert, 0, -1}}},         {{{kEqualize, 2, -1}, {kAutoContrast, 6, -1}}},
    {{{kEqualize, 2, -1}, {kEqualize, 6, -1}}},      {{{kColor, 9, 9}, {kEqualize, 6, -1}}},
    {{{kAutoContrast, 8, -1}, {kSolarize, 2, 8}}},   {{{kBrightness, 1, 3}, {kColor, 7, 0}}},
    {{{kSolarize, 4, 5}, {kAutoContrast, 9, -1}}},   {{{kTranslateY, 9, 9}, {kTranslateY, 7, 9}}},
    {{{kAutoContrast, 9, -1}, {kSolarize, 8, 3}}},   {{{kEqualize, 8, -1}, {kInvert, 1, -1}}},
    {{{kTranslateY, 7, 9}, {kAutoContrast, 9, -1}}},
}};

constexpr std::array<PolicyPair, 25> kSvhn = {{
    {{{kShearX, 9, 4}, {kInvert, 2, -1}}},        {{{kShearY, 9, 8}, {kInvert, 7, -1}}},
    {{{kEqualize, 6, -1}, {kSolarize, 6, 6}}},    {{{kInvert, 9, -1}, {kEqualize, 6, -1}}},
    {{{kEqualize, 6, -1}, {kRotate, 9, 3}}},      {{{kShearX, 9, 4}, {kAutoContrast, 8, -1}}},
    {{{kShearY, 9, 8}, {kInvert, 4, -1}}},        {{{kShearY, 9, 5}, {kSolarize, 2, 6}}},
    {{{kInvert, 9, -1}, {kAutoContrast, 8, -1}}}, {{{kEqualize, 6, -1}, {kRotate, 9, 3}}},
    {{{kShearX, 9, 4}, {kSolarize, 3, 3}}},       {{{kShearY, 8, 8}, {kInvert, 7, -1}}},
    {{{kEqualize, 9, -1}, {kTranslateY, 6, 6}}},  {{{kInvert, 9, -1}, {kEqualize, 6, -1}}},
    {{{kContrast, 3, 3}, {kRotate, 8, 4}}},       {{{kInvert, 8, -1}, {kTranslateY, 0, 2}}},
    {{{kShearY, 7, 6}, {kSolarize, 4, 8}}},       {{{kInvert, 6, -1}, {kRotate, 8, 4}}},
    {{{kShearY, 3, 7}, {kTranslateX, 9, 3}}},     {{{kShearX, 1, 6}, {kInvert, 6, -1}}},
    {{{kSolarize, 7, 2}, {kTranslateY, 6, 7}}},   {{{kShearY, 8, 4}, {kInvert, 8, -1}}},
    {{{kShearX, 7, 9}, {kTranslateY, 8, 3}}},     {{{kShearY, 8, 5}, {kAutoContrast, 7, -1}}},
    {{{kShearX, 7, 2}, {kInvert, 1, -1}}},
}};

// The bits that the policies keep, from `most` to `most` - `fewer`.
float posterize_bits(int most, int fewer, int bin, int bins) {
  const float steps = static_cast<float>((bins - 1) / static_cast<double>(fewer));
  return std::nearbyint(static_cast<float>(most) - static_cast<float>(bin) / steps);
}

double longest_translation(Policy policy, int size) {
  if (policy == Policy::kTrivialAugmentWide) return 32;
  return policy == Policy::kAugMix ? size / 3.0 : 150.0 / 331.0 * size;
}

pixels::Operation shear(int axis, double slope, const ImageShape& shape,
                        const WarpOptions& options) {
  pixels::AffineParameters affine{.has_center = true};
  affine.shear[static_cast<size_t>(axis)] = std::atan(slope) * (180 / std::numbers::pi);
  return pixels::Warp{.matrix = pixels::affine_matrix(affine, shape.height, shape.width),
                      .interpolation = options.interpolation,
                      .fill = options.fill};
}

pixels::Operation translate(int axis, double distance, const ImageShape& shape,
                            const WarpOptions& options) {
  pixels::AffineParameters affine;
  affine.translate[static_cast<size_t>(axis)] = std::trunc(distance);
  return pixels::Warp{.matrix = pixels::affine_matrix(affine, shape.height, shape.width),
                      .interpolation = options.interpolation,
                      .fill = options.fill};
}

}  // namespace

std::string_view name_of(PolicyOperation operation) {
  constexpr std::array<std::string_view, 15> kNames = {
      "Identity",  "ShearX",     "ShearY",       "TranslateX", "TranslateY",
      "Rotate",    "Brightness", "Color",        "Contrast",   "Sharpness",
      "Posterize", "Solarize",   "AutoContrast", "Equalize",   "Invert"};
  return kNames[static_cast<size_t>(operation)];
}

std::span<const PolicyOperation> operations_of(Policy policy) {
  switch (policy) {
    case Policy::kRandAugment:
    case Policy::kTrivialAugmentWide: return kRandAugmentOperations;
    case Policy::kAutoAugment: return kAutoAugmentOperations;
    case Policy::kAugMix: return kAugMixOperations;
  }
  throw InternalError("an unknown policy");
}

std::optional<float> magnitude_of(Policy policy, PolicyOperation operation, int bin, int bins,
                                  const ImageShape& shape) {
  const bool wide = policy == Policy::kTrivialAugmentWide;
  switch (operation) {
    case kIdentity:
    case kAutoContrast:
    case kEqualize:
    case kInvert: return std::nullopt;
    case kShearX:
    case kShearY: return linspace(0, wide ? 0.99 : 0.3, bin, bins);
    case kTranslateX: return linspace(0, longest_translation(policy, shape.width), bin, bins);
    case kTranslateY: return linspace(0, longest_translation(policy, shape.height), bin, bins);
    case kRotate: return linspace(0, wide ? 135 : 30, bin, bins);
    case kBrightness:
    case kColor:
    case kContrast:
    case kSharpness: return linspace(0, wide ? 0.99 : 0.9, bin, bins);
    case kPosterize:
      return posterize_bits(policy == Policy::kAugMix ? 4 : 8, wide ? 6 : 4, bin, bins);
    case kSolarize: return linspace(1, 0, bin, bins);
  }
  throw InternalError("an unknown operation of a policy");
}

bool is_signed(PolicyOperation operation) {
  return operation >= kShearX && operation <= kSharpness;
}

void append_operation(PolicyOperation operation, double magnitude, const ImageShape& shape,
                      const WarpOptions& options, std::vector<pixels::Operation>& operations) {
  const auto append = [&](pixels::Operation one) { operations.push_back(std::move(one)); };
  switch (operation) {
    case kIdentity: return;
    case kShearX: return append(shear(0, magnitude, shape, options));
    case kShearY: return append(shear(1, magnitude, shape, options));
    case kTranslateX: return append(translate(0, magnitude, shape, options));
    case kTranslateY: return append(translate(1, magnitude, shape, options));
    case kRotate:
      return append(pixels::rotation(magnitude, shape.height, shape.width, options.interpolation,
                                     options.fill));
    case kBrightness: return append(pixels::Brightness{1 + magnitude});
    case kColor: return append(pixels::Saturation{1 + magnitude});
    case kContrast: return append(pixels::Contrast{1 + magnitude});
    case kSharpness: return append(pixels::Sharpness{1 + magnitude});
    case kPosterize: return append(pixels::Posterize{static_cast<int>(magnitude)});
    case kSolarize: return append(pixels::Solarize{255 * magnitude});
    case kAutoContrast: return append(pixels::AutoContrast{});
    case kEqualize: return append(pixels::Equalize{});
    case kInvert: return append(pixels::Invert{});
  }
  throw InternalError("an unknown operation of a policy");
}

std::span<const PolicyPair> auto_augment_pairs(std::string_view data) {
  if (data == "imagenet") return kImageNet;
  if (data == "cifar10") return kCifar10;
  if (data == "svhn") return kSvhn;
  throw InternalError(fmt::format("no policy of AutoAugment for '{}'", data));
}

}  // namespace gallop::data
