#pragma once

#include <memory>

#include "gallop/config/visitor.h"
#include "gallop/train/losses/loss.h"

namespace gallop::train {

struct DiceConfig {
  double smooth = 1;
  bool squared = false;
  bool include_background = true;
};

void visit(config::Visitor& visitor, DiceConfig& config);

/// 1 - (2 sum p t + smooth) / (sum p + sum t + smooth), averaged over the classes of a sample; sums
/// are over its positions, and with squared the denominator has p^2 and t^2 (Milletari et al.,
/// "V-Net", 2016). p is the softmax of the logits and t the one-hot label, excluding ignored
/// labels; for floating-point targets of the outputs' sizes, p is the sigmoid. Without
/// include_background, class 0 is excluded. The count is the number of samples.
std::unique_ptr<Loss> make_dice(const DiceConfig& config, const LossContext& context);

}  // namespace gallop::train
