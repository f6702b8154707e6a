#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gallop/config/visitor.h"
#include "gallop/tensor/named_tensor.h"

namespace gallop::optim {

/// Options of the parameters with matching names.
struct GroupConfig {
  std::string match;  ///< Glob pattern of names: "*.bias", "transformer.h.?.attn.*".
  /// Empty: those of earlier groups, or else 1 and that of the optimizer.
  std::optional<double> lr_factor, weight_decay;
};

/// Parameter groups, an option of all optimizers:
///
///     optimizer: {name: adamw, layer_decay: 0.8, groups: [{match: "*.bias", lr_factor: 2}]}
struct GroupsConfig {
  /// Layer-wise learning rate decay: the factor between consecutive layers (Howard and Ruder,
  /// "Universal language model fine-tuning", ACL 2018). A layer is a block, identified by the first
  /// number in its name ("layer1.0", "transformer.h.3"); everything before the blocks is one layer,
  /// and everything after them another one.
  double layer_decay = 1;
  /// If several groups match, the last one that sets an option applies. Their factors multiply
  /// those of layer_decay.
  std::vector<GroupConfig> groups{};
};

void visit(config::Visitor& visitor, GroupConfig& config);
/// Visits the group options of an optimizer.
void visit_groups(config::Visitor& visitor, GroupsConfig& config);

/// Options by parameter.
struct ParameterOptions {
  std::vector<double> lr_factors, weight_decays;
  std::vector<bool> has_own_decay;  ///< Set by its group, or zero; otherwise the optimizer's, which
                                    ///< can be scheduled.
};

/// One-dimensional parameters have no weight decay unless `decay_1d` or their group specifies it.
/// Throws UsageError for a group that matches no parameter.
ParameterOptions options_of(const NamedTensors& parameters, double weight_decay, bool decay_1d,
                            const GroupsConfig& config);

}  // namespace gallop::optim
