#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gallop/config/visitor.h"
#include "gallop/train/losses/loss.h"

namespace gallop::train {

/// The options of losses for classes of different sizes.
struct ClassWeightsConfig {
  std::vector<std::string> class_weights;  ///< Numbers, or one name; empty: all 1.
  double beta = 0.9999;
};

void visit(config::Visitor& visitor, ClassWeightsConfig& config);

/// The weight of each class; empty if all are 1. Of n samples, n_c of them in class c, and k
/// classes, all that have samples:
///
///     balanced          n / (k * n_c), as in scikit-learn
///     effective-number  in proportion to (1 - beta) / (1 - beta^n_c), with the mean 1 (Cui et al.,
///                       "Class-balanced loss based on effective number of samples", 2019)
///
/// A class without samples has the weight 0. Throws UsageError for another number of weights than
/// classes.
std::vector<double> class_weights(const char* loss, const ClassWeightsConfig& config,
                                  const LossContext& context);

}  // namespace gallop::train
