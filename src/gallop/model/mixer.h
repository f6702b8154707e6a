#pragma once

#include <string>

#include "gallop/config/visitor.h"
#include "gallop/model/model.h"

namespace gallop::model {

/// MLP-Mixer (Tolstikhin et al., "MLP-Mixer: an all-MLP architecture for vision", 2021) with timm's
/// names. The defaults are for small images.
struct MixerConfig {
  int64_t patch = 4;
  int64_t width = 192;
  int64_t depth = 8;
  double token_ratio = 0.5;
  double channel_ratio = 4;
  double dropout = 0;
  std::string conv_init = "default";
  std::string linear_init = "xavier-uniform";
};

void visit(config::Visitor& visitor, MixerConfig& config);

/// Supports only images of the task's size. Throws UsageError if it is not a multiple of the patch.
std::unique_ptr<Model> make_mixer(const MixerConfig& config, const Task& task,
                                  InitialWeights weights);

}  // namespace gallop::model
