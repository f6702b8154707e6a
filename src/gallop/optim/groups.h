#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gallop/config/visitor.h"
#include "gallop/tensor/named_tensor.h"

namespace gallop::optim {

/// What parameters of certain names have of their own.
struct GroupConfig {
  std::string match;  ///< Pattern of names, '*' and '?': "*.bias", "transformer.h.?.attn.*".
  double lr_factor = 1;
  std::optional<double> weight_decay;  ///< Empty for the optimizer's.
};

/// Which parameters an optimizer treats in another way than the rest, an option of all of them:
///
///     optimizer: {name: adamw, layer_decay: 0.8, groups: [{match: "*.bias", lr_factor: 2}]}
struct GroupsConfig {
  /// Factor of the learning rate of each layer in that of the layer behind it (Howard and Ruder,
  /// "Universal language model fine-tuning", ACL 2018). A layer is a block, told by the first
  /// number in its name ("layer1.0", "transformer.h.3"); what comes before the blocks is one layer,
  /// and what comes behind them another.
  double layer_decay = 1;
  /// Where several match, the last decides. Their factors come on top of layer_decay's.
  std::vector<GroupConfig> groups{};
};

void visit(config::Visitor& visitor, GroupConfig& config);
/// Among the options of an optimizer.
void visit_groups(config::Visitor& visitor, GroupsConfig& config);

/// Of each parameter.
struct ParameterOptions {
  std::vector<double> lr_factors, weight_decays;
  std::vector<bool> has_own_decay;  ///< Its group's, or none; else the optimizer's, which may vary.
};

/// Parameters of at most one dimension have no weight decay unless `decay_1d` or their group says
/// so. Throws UsageError for a group that matches no parameter.
ParameterOptions options_of(const NamedTensors& parameters, double weight_decay, bool decay_1d,
                            const GroupsConfig& config);

}  // namespace gallop::optim
