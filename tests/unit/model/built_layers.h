#pragma once

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "gallop/config/option_error.h"
#include "gallop/config/resolve.h"
#include "gallop/model/layers_model.h"

namespace gallop::model {

inline const Task kImages{
    .kind = Task::Kind::kImages, .channels = 3, .height = 12, .width = 12, .classes = 5};
inline const Task kSequences{
    .kind = Task::Kind::kNumbers, .classes = 5, .context = 12, .features = 3};
inline const Task kText{.kind = Task::Kind::kText, .classes = 17, .context = 9};

inline const ModelRegistry& models() {
  static const ModelRegistry kModels = built_in_models();
  return kModels;
}

inline config::Node node_of(const std::string& layers) {
  return config::parse_yaml("layers: " + layers, "r.yaml");
}

/// Returns what is wrong with the options; empty if they are valid.
inline std::string read(const std::string& layers, LayersConfig& config) {
  config::Problems problems;
  config::read_fields(
      node_of(layers), [&config](config::Visitor& visitor) { visit(visitor, config); }, problems);
  return problems.empty() ? ""
                          : problems.list().front().key + ": " + problems.list().front().message;
}

inline std::unique_ptr<Model> build(const std::string& layers, const Task& task) {
  LayersConfig config(models());
  EXPECT_EQ(read(layers, config), "");
  return make_layers(config, task, InitialWeights(3));
}

/// Returns the error message of building the layers.
inline std::string mistake(const std::string& layers, const Task& task = kImages) {
  LayersConfig config(models());
  if (const std::string wrong = read(layers, config); !wrong.empty()) return wrong;
  try {
    make_layers(config, task, InitialWeights(3));
  } catch (const config::OptionError& error) {
    return error.what();
  }
  return "";
}

inline std::vector<at::Tensor> parameters_of(const Model& model) {
  std::vector<at::Tensor> list;
  for (const auto& [name, tensor] : model.parameters()) list.push_back(tensor);
  return list;
}

}  // namespace gallop::model
