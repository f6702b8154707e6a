#pragma once

#include <memory>

#include "gallop/config/visitor.h"
#include "gallop/optim/wrapper.h"

namespace gallop::optim {

/// Lookahead (Zhang et al., "Lookahead optimizer: k steps forward, 1 step back", NeurIPS 2019)
/// around any optimizer, whose state is not modified. Every k updates:
///
///     s = s + alpha * (p - s),  p = s
///
/// The slow weights s are evaluated and saved, as in the paper. With a power, alpha is the final
/// value of the step size 1 - (1 - alpha) * progress^power, as in the speed records of CIFAR-10
/// (Jordan, "94% on CIFAR-10 in 3.29 seconds on a single GPU", 2024: k 5, alpha 1 - 0.95^5, power
/// 3).
struct LookaheadConfig {
  int64_t k = 5;
  double alpha = 0.5;
  double power = 0;
};

void visit(config::Visitor& visitor, LookaheadConfig& config);

/// State: that of the optimizer, "lookahead.counts", fp64 [2] (updates and steps of s), and
/// "lookahead.slow.NAME" for each parameter; while averaged weights are in use,
/// "lookahead.training.NAME" is p. Throws UsageError around an average.
std::unique_ptr<Optimizer> make_lookahead(const LookaheadConfig& config, Wrapped wrapped);

}  // namespace gallop::optim
