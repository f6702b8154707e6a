#include "gallop/optim/groups.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/base/text.h"

namespace gallop::optim {

namespace {

// The name up to its first numeric part; empty if there is none.
std::string block_of(const std::string& name) {
  for (size_t begin = 0; begin < name.size();) {
    const size_t end = std::min(name.find('.', begin), name.size());
    const bool is_number = end > begin && std::all_of(name.begin() + static_cast<int64_t>(begin),
                                                      name.begin() + static_cast<int64_t>(end),
                                                      [](char c) { return c >= '0' && c <= '9'; });
    if (is_number) return name.substr(0, end);
    begin = end + 1;
  }
  return {};
}

// The layer index of each parameter.
std::vector<int64_t> layers_of(const NamedTensors& parameters) {
  std::vector<int64_t> layers;
  std::vector<std::string> blocks;
  for (const auto& [name, tensor] : parameters) {
    const std::string block = block_of(name);
    if (block.empty()) {
      layers.push_back(blocks.empty() ? 0 : -1);
      continue;
    }
    auto found = std::find(blocks.begin(), blocks.end(), block);
    if (found == blocks.end()) found = blocks.insert(blocks.end(), block);
    layers.push_back(found - blocks.begin() + 1);
  }
  const auto last = static_cast<int64_t>(blocks.size()) + 1;
  std::replace(layers.begin(), layers.end(), int64_t{-1}, last);
  return layers;
}

}  // namespace

void visit(config::Visitor& visitor, GroupConfig& config) {
  visitor.field({.name = "match", .help = "glob pattern of parameter names (*, ?)"}, config.match);
  visitor.field({.name = "lr_factor",
                 .help = "learning rate multiplier; none: that of earlier groups, or 1",
                 .min = 0},
                config.lr_factor);
  visitor.field({.name = "weight_decay",
                 .help = "weight decay of the group; none: that of earlier groups, or of the "
                         "optimizer",
                 .min = 0},
                config.weight_decay);
}

void visit_groups(config::Visitor& visitor, GroupsConfig& config) {
  visitor.field({.name = "layer_decay",
                 .help = "layer-wise learning rate decay, from the last layer to the first",
                 .min = 0,
                 .max = 1,
                 .above_min = true},
                config.layer_decay);
  visitor.list(
      {.name = "groups", .help = "parameter groups with their own learning rate or weight decay"},
      config.groups);
}

ParameterOptions options_of(const NamedTensors& parameters, double weight_decay, bool decay_1d,
                            const GroupsConfig& config) {
  ParameterOptions options;
  const std::vector<int64_t> layers = layers_of(parameters);
  const int64_t last = layers.empty() ? 0 : *std::max_element(layers.begin(), layers.end());
  for (size_t i = 0; i < parameters.size(); ++i) {
    const bool decays = parameters[i].tensor.dim() > 1 || decay_1d;
    options.weight_decays.push_back(decays ? weight_decay : 0);
    options.has_own_decay.push_back(!decays);
    options.lr_factors.push_back(1);
  }
  if (config.layer_decay != 1 && last == 0) {
    throw UsageError(
        "optimizer.layer_decay needs numbered blocks, such as 'blocks.0', in the names of "
        "parameters, and this model has none: omit it, or use optimizer.groups");
  }
  for (const GroupConfig& group : config.groups) {
    bool matched = false;
    for (size_t i = 0; i < parameters.size(); ++i) {
      if (!matches_pattern(parameters[i].name, group.match)) continue;
      matched = true;
      if (group.lr_factor) options.lr_factors[i] = *group.lr_factor;
      if (!group.weight_decay) continue;
      options.weight_decays[i] = *group.weight_decay;
      options.has_own_decay[i] = true;
    }
    if (!matched) {
      throw UsageError("optimizer.groups: " + no_parameter_named(group.match, parameters));
    }
  }
  for (size_t i = 0; i < parameters.size() && config.layer_decay != 1; ++i) {
    options.lr_factors[i] *= std::pow(config.layer_decay, static_cast<double>(last - layers[i]));
  }
  return options;
}

}  // namespace gallop::optim
