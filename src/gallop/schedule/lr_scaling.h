#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gallop/config/visitor.h"

namespace gallop::schedule {

/// Scaling rules of the learning rate with the batch size: linear (Goyal et al., "Accurate, large
/// minibatch SGD", 2017), or by the square root, for adaptive optimizers (Malladi et al., "On the
/// SDEs and scaling rules for adaptive gradient algorithms", 2022).
struct LrScaling {
  std::string rule = "none";     ///< linear, sqrt or none.
  std::optional<int64_t> batch;  ///< Reference batch size of the learning rate.

  bool scales() const { return rule != "none"; }
  /// The factor for an update with this many samples, in any number of micro-batches.
  double factor(int64_t samples) const;
};

/// Visits the scaling options.
void visit_lr_scaling(config::Visitor& visitor, LrScaling& scaling);

/// Throws UsageError for a rule without a reference batch size or vice versa, and for a rule
/// together with an automatic learning rate.
void check(const LrScaling& scaling, bool lr_is_auto);

}  // namespace gallop::schedule
