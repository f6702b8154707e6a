#pragma once

#include <memory>

#include "gallop/config/visitor.h"
#include "gallop/model/layer/containers.h"

namespace gallop::model {

/// Pooling over windows of an image, as torch.nn.MaxPool2d and AvgPool2d, or of a sequence, as
/// MaxPool1d and AvgPool1d.
struct PoolConfig {
  int64_t kernel = 2;
  int64_t stride = 0;  ///< 0: the kernel size.
  int64_t padding = 0;
};

void visit(config::Visitor& visitor, PoolConfig& config);

std::unique_ptr<Layer> make_max_pool(const PoolConfig& config, LayerContext& context);
std::unique_ptr<Layer> make_avg_pool(const PoolConfig& config, LayerContext& context);
/// Averages over an image or sequence and returns a vector [C].
std::unique_ptr<Layer> make_global_avg_pool(const NoOptions& config, LayerContext& context);

}  // namespace gallop::model
