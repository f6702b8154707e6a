#pragma once

#include <memory>

#include "gallop/config/visitor.h"
#include "gallop/model/layer/layer.h"

namespace gallop::model {

/// Batch normalization over all dimensions but the channels (Ioffe and Szegedy 2015), as
/// torch.nn.BatchNorm1d and 2d.
struct BatchNormConfig {
  double momentum = 0.1;
};

/// Layer norm (Ba et al. 2016) over the channels of a vector or sequence.
struct LayerNormConfig {
  double eps = 1e-5;
  bool bias = true;
};

/// RMS norm (Zhang and Sennrich 2019) over the channels of a vector or sequence.
struct RmsNormConfig {
  double eps = 1e-6;
};

/// Group normalization of an image (Wu and He 2018), as torch.nn.GroupNorm.
struct GroupNormConfig {
  int64_t groups = 32;
  double eps = 1e-5;
};

struct DropoutConfig {
  double p = 0.5;
};

void visit(config::Visitor& visitor, BatchNormConfig& config);
void visit(config::Visitor& visitor, LayerNormConfig& config);
void visit(config::Visitor& visitor, RmsNormConfig& config);
void visit(config::Visitor& visitor, GroupNormConfig& config);
void visit(config::Visitor& visitor, DropoutConfig& config);

std::unique_ptr<Layer> make_batch_norm(const BatchNormConfig& config, LayerContext& context);
std::unique_ptr<Layer> make_layer_norm(const LayerNormConfig& config, LayerContext& context);
std::unique_ptr<Layer> make_rms_norm(const RmsNormConfig& config, LayerContext& context);
std::unique_ptr<Layer> make_group_norm(const GroupNormConfig& config, LayerContext& context);
/// Sets elements to 0 with probability p in training (Srivastava et al. 2014).
std::unique_ptr<Layer> make_dropout(const DropoutConfig& config, LayerContext& context);

}  // namespace gallop::model
