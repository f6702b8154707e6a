#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gallop/data/augment.h"

namespace gallop::data {

/// Whether a text is the name of an automatic augmentation as timm 1.0 writes it:
/// "rand-m9-n3-mstd0.5-inc1", "augmix-m5-w4-d2", "original-mstd0.5", "v0".
bool is_timm_policy(std::string_view text);

/// The augmentation with the distribution of timm's RandAugment, AugMixAugment or AutoAugment of
/// this name, and the pixels of torchvision's operations. `fill` is empty for timm's gray, 128.
/// Throws UsageError that names the section that is wrong.
std::unique_ptr<Augmentation> make_timm_policy(const std::string& text,
                                               pixels::Interpolation interpolation,
                                               const std::vector<double>& fill);

}  // namespace gallop::data
