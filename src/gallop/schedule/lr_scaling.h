#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "gallop/config/visitor.h"

namespace gallop::schedule {

/// How a learning rate that is right for one batch follows another: in proportion (Goyal et al.,
/// "Accurate, large minibatch SGD", 2017), or with the square root of it, as adaptive optimizers
/// want (Malladi et al., "On the SDEs and scaling rules for adaptive gradient algorithms", 2022).
struct LrScaling {
  std::string rule = "none";     ///< linear, sqrt or none.
  std::optional<int64_t> batch;  ///< That the rate is for.

  bool scales() const { return rule != "none"; }
  /// Of the rate, for an update from so many samples, in however many micro-batches.
  double factor(int64_t samples) const;
};

/// Options beside `lr`.
void visit_lr_scaling(config::Visitor& visitor, LrScaling& scaling);

/// Throws UsageError for a rule without a batch, a batch without a rule, and a rule for a rate that
/// is to be found.
void check(const LrScaling& scaling, bool lr_is_auto);

}  // namespace gallop::schedule
