#pragma once

#include <string>

#include "gallop/config/visitor.h"
#include "gallop/model/model.h"

namespace gallop::model {

/// Residual network (He et al. 2016) for images of any size, with torchvision's names and its
/// stride in the 3x3 convolution of bottlenecks.
struct ResnetConfig {
  /// 18, 34 or 50: the ImageNet architecture, four stages starting at 64 channels. Other depths
  /// 6n+2 from 8 on: the CIFAR architecture, three stages of n blocks starting at 16 channels.
  int64_t depth = 20;
  /// "cifar": 3x3 convolution; "strided": the same with stride 2, a quarter of the work;
  /// "imagenet": 7x7 with stride 2 and pooling; "auto": cifar or imagenet by image size.
  std::string stem = "auto";
  /// Multiplier for the channels of every stage, rounded to a multiple of 8, at least 8.
  double width = 1;
  /// Shortcut where shapes change: "projection" (1x1 convolution, option B) or "pad" (zeros, option
  /// A). "none" removes all shortcuts.
  std::string shortcut = "projection";
  /// Initializes each block's last batch norm to 0, so that each block starts as its shortcut.
  bool zero_init_residual = false;
  double batch_norm_momentum = 0.1;
  /// Drop probability of the last block per sample; see stochastic_depth_rates().
  double stochastic_depth = 0;
  std::string conv_init = "default";
  std::string linear_init = "default";
};

void visit(config::Visitor& visitor, ResnetConfig& config);

std::unique_ptr<Model> make_resnet(const ResnetConfig& config, const Task& task,
                                   InitialWeights weights);

}  // namespace gallop::model
