#pragma once

#include <memory>
#include <string>

#include "gallop/config/visitor.h"
#include "gallop/optim/groups.h"
#include "gallop/optim/optimizer.h"

namespace gallop::optim {

/// Lion (Chen et al., "Symbolic discovery of optimization algorithms", NeurIPS 2023), a sign-based
/// optimizer. Needs a learning rate 3 to 10 times smaller than AdamW's, and a weight decay larger
/// by the same factor:
///
///     p = p - lr * weight_decay * p - lr * sign(beta1 * m + (1 - beta1) * g)
///     m = beta2 * m + (1 - beta2) * g
struct LionConfig {
  double lr = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.99;
  std::string state_bits = "32";  ///< Or 8; see optim/fields.h.
  std::string rounding = "auto";  ///< Of bf16 weights; see optim/fields.h.
  double weight_decay = 0;
  bool decay_1d = true;
  GroupsConfig groups{};
};

void visit(config::Visitor& visitor, LionConfig& config);

/// State: "exp_avg.NAME" (m) for each parameter.
std::unique_ptr<Optimizer> make_lion(const LionConfig& config, const NamedTensors& parameters);

}  // namespace gallop::optim
