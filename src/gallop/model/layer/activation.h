#pragma once

#include <memory>

#include "gallop/config/visitor.h"
#include "gallop/model/layer/containers.h"

namespace gallop::model {

struct GeluConfig {
  bool approximate = false;  ///< The tanh approximation, as in GPT-2.
};
struct LeakyReluConfig {
  double negative_slope = 0.01;
};
struct EluConfig {
  double alpha = 1;
};

void visit(config::Visitor& visitor, GeluConfig& config);
void visit(config::Visitor& visitor, LeakyReluConfig& config);
void visit(config::Visitor& visitor, EluConfig& config);

// Elementwise functions, as the PyTorch modules of these names.
std::unique_ptr<Layer> make_relu(const NoOptions& config, LayerContext& context);
std::unique_ptr<Layer> make_silu(const NoOptions& config, LayerContext& context);
std::unique_ptr<Layer> make_tanh(const NoOptions& config, LayerContext& context);
std::unique_ptr<Layer> make_sigmoid(const NoOptions& config, LayerContext& context);
std::unique_ptr<Layer> make_hardswish(const NoOptions& config, LayerContext& context);
std::unique_ptr<Layer> make_mish(const NoOptions& config, LayerContext& context);
std::unique_ptr<Layer> make_softplus(const NoOptions& config, LayerContext& context);
std::unique_ptr<Layer> make_gelu(const GeluConfig& config, LayerContext& context);
std::unique_ptr<Layer> make_leaky_relu(const LeakyReluConfig& config, LayerContext& context);
std::unique_ptr<Layer> make_elu(const EluConfig& config, LayerContext& context);

}  // namespace gallop::model
