#pragma once

#include <memory>

#include "gallop/config/visitor.h"
#include "gallop/optim/optimizer.h"

namespace gallop::optim {

/// Adam with decoupled weight decay (Loshchilov and Hutter, "Decoupled weight decay
/// regularization", ICLR 2019), as in PyTorch, with t counted from 1:
///
///     p = p - lr * weight_decay * p
///     m = beta1 * m + (1 - beta1) * g,  v = beta2 * v + (1 - beta2) * g * g
///     p = p - lr * m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps)
struct AdamwConfig {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
  bool decay_1d = true;  ///< Weight decay also on parameters of one dimension: biases and norms.
};

void visit(config::Visitor& visitor, AdamwConfig& config);

/// State: "exp_avg.NAME" (m) and "exp_avg_sq.NAME" (v) for each parameter, and "step" (t), fp32
/// [parameters], in the order of `parameters`.
std::unique_ptr<Optimizer> make_adamw(const AdamwConfig& config, const NamedTensors& parameters);

}  // namespace gallop::optim
