#pragma once

#include <string>
#include <vector>

#include "gallop/config/visitor.h"
#include "gallop/model/model.h"

namespace gallop::model {

/// The network of the CIFAR-10 speed records (Jordan, "94% on CIFAR-10 in 3.29 seconds on a single
/// GPU", 2024, after Page's and Balsam's): a first convolution with a small window, frozen after
/// whitening, then a few wide stages of two 3x3 convolutions, each downsampled by pooling.
struct AirbenchConfig {
  std::vector<int64_t> widths{64, 256, 256};  ///< Channels of each stage.
  int64_t patch = 2;                          ///< Side of the first layer's window in pixels.
  double whitening_eps = 5e-4;                ///< Added to the variance of each direction.
  std::string activation = "gelu";
  double batch_norm_momentum = 0.4;
  double logit_scale = 0.1111111111111111;
  std::string conv_init = "dirac";
};

void visit(config::Visitor& visitor, AirbenchConfig& config);

/// Parameters: "whiten.bias", "layer1.conv1.weight", "layer1.bn1.bias", ..., "head.weight"; the
/// scales of batch norms are fixed at 1. The first layer's weight is a buffer, which is random
/// until initialize_from() has received images.
std::unique_ptr<Model> make_airbench(const AirbenchConfig& config, const Task& task,
                                     InitialWeights weights);

}  // namespace gallop::model
