#pragma once

#include <string>
#include <vector>

#include "gallop/config/visitor.h"
#include "gallop/model/model.h"

namespace gallop::model {

/// Fully connected layers with activations in between, on flattened images.
struct MlpConfig {
  std::vector<int64_t> hidden = {256, 128};
  std::string activation = "relu";
  double dropout = 0;
  std::string linear_init = "default";
};

void visit(config::Visitor& visitor, MlpConfig& config);

/// Parameters "layers.0.weight", "layers.0.bias", ...; the last layer returns the logits.
std::unique_ptr<Model> make_mlp(const MlpConfig& config, const Task& task, InitialWeights weights);

}  // namespace gallop::model
