#pragma once

#include <memory>
#include <optional>

#include "gallop/config/visitor.h"
#include "gallop/train/losses/class_weights.h"
#include "gallop/train/losses/loss.h"

namespace gallop::train {

struct FocalConfig {
  double gamma = 2;
  /// For targets 0 to 1: weight alpha for positive, 1 - alpha for negative ones; none: both 1.
  std::optional<double> alpha = 0.25;
  ClassWeightsConfig classes;  ///< For class labels.
};

void visit(config::Visitor& visitor, FocalConfig& config);

/// -w (1 - p)^gamma log(p), where p is the probability of the target (Lin et al., "Focal loss for
/// dense object detection", ICCV 2017): for class labels the softmax, with the class weight; for
/// floating-point targets of the outputs' sizes the sigmoid, with alpha, as in
/// torchvision.ops.sigmoid_focal_loss. Weights do not change the count.
std::unique_ptr<Loss> make_focal(const FocalConfig& config, const LossContext& context);

}  // namespace gallop::train
