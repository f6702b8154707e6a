#pragma once

#include <memory>
#include <string>

#include "gallop/config/visitor.h"
#include "gallop/optim/groups.h"
#include "gallop/optim/optimizer.h"

namespace gallop::optim {

/// LARS (You et al., "Large batch training of convolutional networks", arXiv:1708.03888): momentum
/// whose learning rate follows the norm of each parameter. |x| is the Euclidean norm:
///
///     r = trust_coefficient * |p| / (|g| + weight_decay * |p| + eps)
///     b = momentum * b + lr * r * (g + weight_decay * p)
///     p = p - b
///
/// r is 1 if a norm is 0, and for parameters without weight decay unless `always_adapt`: biases and
/// norms are trained with plain momentum.
struct LarsConfig {
  double lr = 1;
  double momentum = 0.9;
  double trust_coefficient = 0.001;
  double eps = 1e-8;
  bool always_adapt = false;
  std::string rounding = "auto";  ///< For bf16 weights; see optim/fields.h.
  double weight_decay = 1e-4;
  bool decay_1d = false;
  GroupsConfig groups{};
};

/// LAMB (You et al., "Large batch optimization for deep learning: training BERT in 76 minutes",
/// ICLR 2020): AdamW with updates scaled to the parameter's norm. m and v as in Adam:
///
///     u = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps) + weight_decay * p
///     p = p - lr * |p| / |u| * u
///
/// The ratio |p| / |u| is 1 in the same cases.
struct LambConfig {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-6;
  bool always_adapt = false;
  std::string rounding = "auto";
  double weight_decay = 0.01;
  bool decay_1d = false;
  GroupsConfig groups{};
};

void visit(config::Visitor& visitor, LarsConfig& config);
void visit(config::Visitor& visitor, LambConfig& config);

/// State: "momentum.NAME" (b) for each parameter.
std::unique_ptr<Optimizer> make_lars(const LarsConfig& config, const NamedTensors& parameters);
/// State: as AdamW's.
std::unique_ptr<Optimizer> make_lamb(const LambConfig& config, const NamedTensors& parameters);

}  // namespace gallop::optim
