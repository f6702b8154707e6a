#pragma once

#include <memory>
#include <string>

#include "gallop/config/component.h"
#include "gallop/model/model.h"

namespace gallop::model {

/// A model defined in the recipe as a sequence of layers from a ModelRegistry. Shapes are inferred
/// from the data.
struct LayersConfig {
  /// `models` is the ModelRegistry that contains the layers.
  explicit LayersConfig(const config::Catalog& models);
  config::ComponentList layers;
  std::string conv_init = "default";
  std::string linear_init = "default";
};

void visit(config::Visitor& visitor, LayersConfig& config);

/// Parameters "layers.0.weight", "layers.3.layers.1.weight", ... Throws config::OptionError if a
/// layer does not support the output of the previous one.
std::unique_ptr<Model> make_layers(const LayersConfig& config, const Task& task,
                                   InitialWeights weights);

}  // namespace gallop::model
