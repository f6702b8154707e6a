#pragma once

#include <memory>
#include <vector>

#include "gallop/config/component.h"
#include "gallop/train/losses/loss.h"

namespace gallop::train {

struct WeightedSumConfig {
  explicit WeightedSumConfig(const config::Catalog& catalog) : losses(catalog) {}
  config::ComponentList losses;
  std::vector<double> weights;  ///< One per loss; empty: all 1.
};

void visit(config::Visitor& visitor, WeightedSumConfig& config);

/// The weighted sum of the means of several losses. A step divides the sum of each by its own count
/// over the whole batch (Loss::terms()). Its own sum uses the first loss's count, and is exact for
/// a whole batch. Throws UsageError without losses or with another number of weights.
std::unique_ptr<Loss> make_weighted_sum(const WeightedSumConfig& config,
                                        const LossContext& context);

}  // namespace gallop::train
