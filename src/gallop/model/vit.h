#pragma once

#include <string>

#include "gallop/config/visitor.h"
#include "gallop/model/model.h"

namespace gallop::model {

/// Vision transformer (Dosovitskiy et al. 2021) with timm's names and initialization. The defaults
/// are ViT-Ti of Touvron et al. 2021 with patches for small images.
struct VitConfig {
  int64_t patch = 4;
  int64_t width = 192;
  int64_t depth = 12;
  int64_t heads = 3;
  double mlp_ratio = 4;
  double dropout = 0;
  /// Drop probability of the last layer's branches per sample; see stochastic_depth_rates().
  double stochastic_depth = 0;
  /// "token": classify from an added class token; "mean": classify from the mean of all patches.
  std::string pool = "token";
  std::string conv_init = "default";
  std::string linear_init = "timm";
};

void visit(config::Visitor& visitor, VitConfig& config);

/// For images of other sizes than the task's, the position embedding is interpolated, and pixels
/// beyond the last whole patch are left out. Throws UsageError if the task's size is not a multiple
/// of the patch.
std::unique_ptr<Model> make_vit(const VitConfig& config, const Task& task, InitialWeights weights);

}  // namespace gallop::model
