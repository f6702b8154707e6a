#pragma once

#include <memory>
#include <vector>

#include "gallop/config/component.h"
#include "gallop/config/visitor.h"
#include "gallop/data/batch_transform.h"

namespace gallop::data {

/// Applies one of several transforms to each batch, like torchvision's RandomChoice.
struct RandomChoiceConfig {
  explicit RandomChoiceConfig(const config::Catalog& catalog) : transforms(catalog) {}
  config::ComponentList transforms;
  std::vector<double> p;  ///< Probability of each; empty: equal.
};

void visit(config::Visitor& visitor, RandomChoiceConfig& config);
/// Throws UsageError without transforms, or if the probabilities do not fit them.
std::unique_ptr<BatchTransform> make_random_choice(const RandomChoiceConfig& config);

}  // namespace gallop::data
