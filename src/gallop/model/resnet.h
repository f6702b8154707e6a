#pragma once

#include <string>

#include "gallop/config/visitor.h"
#include "gallop/model/model.h"

namespace gallop::model {

/// Residual network (He et al. 2016) for images of any size, with torchvision's names and its
/// stride in the 3x3 convolution of bottlenecks.
struct ResnetConfig {
  /// 18, 34 or 50: ImageNet form, four stages from 64 channels. Other 6n+2 from 8 on: CIFAR form,
  /// three stages of n blocks from 16 channels.
  int64_t depth = 20;
  /// "cifar": 3x3 convolution; "strided": the same with stride 2, a quarter of the work;
  /// "imagenet": 7x7 with stride 2 and pooling; "auto": cifar or imagenet by the image's size.
  std::string stem = "auto";
  /// Factor of every stage's channels, which are then rounded to a multiple of 8, at least 8.
  double width = 1;
  /// Where sizes change: "projection" (1x1 convolution, option B), "pad" (zeros, option A). "none"
  /// leaves out every shortcut.
  std::string shortcut = "projection";
  /// Each block's last batch norm starts at 0, so that the block starts as its shortcut.
  bool zero_init_residual = false;
  double batch_norm_momentum = 0.1;
  /// Chance that a sample skips the last block in training; see stochastic_depth_rates().
  double stochastic_depth = 0;
  std::string conv_init = "default";
  std::string linear_init = "default";
};

void visit(config::Visitor& visitor, ResnetConfig& config);

std::unique_ptr<Model> make_resnet(const ResnetConfig& config, const Task& task,
                                   InitialWeights weights);

}  // namespace gallop::model
