#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "gallop/config/visitor.h"
#include "gallop/train/losses/loss.h"

namespace gallop::train {

struct FocalConfig {
  double gamma = 2;
  /// Of targets 0 to 1: weight of positive ones, one less that of negative ones; none: both 1.
  std::optional<double> alpha = 0.25;
  std::vector<double> class_weights;  ///< Of class labels, one a class; empty: all 1.
};

void visit(config::Visitor& visitor, FocalConfig& config);

/// -w (1 - p)^gamma log(p), p being the probability of the target (Lin et al., "Focal loss for
/// dense object detection", ICCV 2017): for class labels that of softmax, with the class's weight;
/// for floating-point targets of the outputs' sizes that of sigmoid, with alpha, as
/// torchvision.ops.sigmoid_focal_loss. Weights do not change the count.
std::unique_ptr<Loss> make_focal(const FocalConfig& config, const LossContext& context);

}  // namespace gallop::train
