#pragma once

#include <memory>
#include <string>

#include "gallop/config/component.h"
#include "gallop/model/model.h"

namespace gallop::model {

/// A model put together in the recipe from the layers of a ModelRegistry, one after the other.
/// Shapes follow from the data.
struct LayersConfig {
  /// `models` is the ModelRegistry that has the layers.
  explicit LayersConfig(const config::Catalog& models);
  config::ComponentList layers;
  std::string conv_init = "default";
  std::string linear_init = "default";
};

void visit(config::Visitor& visitor, LayersConfig& config);

/// Parameters "layers.0.weight", "layers.3.layers.1.weight", ... Throws config::OptionError where a
/// layer cannot take what the one before it makes.
std::unique_ptr<Model> make_layers(const LayersConfig& config, const Task& task,
                                   InitialWeights weights);

}  // namespace gallop::model
