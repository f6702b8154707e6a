#pragma once

#include <memory>
#include <vector>

#include "gallop/config/visitor.h"
#include "gallop/data/augment.h"

namespace gallop::data {

/// Random changes of color in random order, with the distribution and pixels of torchvision's
/// v2.ColorJitter. One number v is the range max(0, 1 - v) to 1 + v of a factor, or -v to v of the
/// hue, in whole turns; empty leaves the property as it is.
struct ColorJitterConfig {
  std::vector<double> brightness, contrast, saturation, hue;
};

/// Converts to gray with probability `p`, keeping the channels, like torchvision's
/// v2.RandomGrayscale.
struct RandomGrayscaleConfig {
  double p = 0.1;
};

void visit(config::Visitor& visitor, ColorJitterConfig& config);
void visit(config::Visitor& visitor, RandomGrayscaleConfig& config);

/// Throws UsageError for ranges that are none, and if nothing is changed.
std::unique_ptr<Augmentation> make_color_jitter(const ColorJitterConfig& config);
std::unique_ptr<Augmentation> make_random_grayscale(const RandomGrayscaleConfig& config);

}  // namespace gallop::data
