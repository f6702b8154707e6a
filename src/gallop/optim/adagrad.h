#pragma once

#include <memory>
#include <string>

#include "gallop/config/visitor.h"
#include "gallop/optim/groups.h"
#include "gallop/optim/optimizer.h"

namespace gallop::optim {

/// Adagrad (Duchi et al., "Adaptive subgradient methods for online learning and stochastic
/// optimization", JMLR 2011), as in PyTorch, with t counted from 1:
///
///     g = gradient + weight_decay * p,  v = v + g * g
///     p = p - lr / (1 + (t - 1) * lr_decay) * g / (sqrt(v) + eps)
struct AdagradConfig {
  double lr = 0.01;
  double lr_decay = 0;
  double eps = 1e-10;
  double initial_accumulator_value = 0;  ///< v before the first step.
  std::string rounding = "auto";         ///< For bf16 weights; see optim/fields.h.
  double weight_decay = 0;
  bool decay_1d = true;
  GroupsConfig groups{};
};

/// Adadelta (Zeiler, "ADADELTA: an adaptive learning rate method", arXiv:1212.5701), as in PyTorch:
///
///     g = gradient + weight_decay * p,  v = rho * v + (1 - rho) * g * g
///     d = sqrt(u + eps) / sqrt(v + eps) * g,  u = rho * u + (1 - rho) * d * d
///     p = p - lr * d
struct AdadeltaConfig {
  double lr = 1;
  double rho = 0.9;
  double eps = 1e-6;
  std::string rounding = "auto";
  double weight_decay = 0;
  bool decay_1d = true;
  GroupsConfig groups{};
};

/// RMSprop (Hinton, Srivastava and Swersky, lecture 6a of "Neural networks for machine learning",
/// 2012; centered as in Graves, arXiv:1308.0850), as in PyTorch:
///
///     g = gradient + weight_decay * p,  v = alpha * v + (1 - alpha) * g * g
///     c = alpha * c + (1 - alpha) * g,  w = centered ? v - c * c : v
///     b = momentum * b + g / (sqrt(w) + eps)
///     p = p - lr * b
struct RmspropConfig {
  double lr = 0.01;
  double alpha = 0.99;
  double eps = 1e-8;
  double momentum = 0;
  bool centered = false;
  std::string rounding = "auto";
  double weight_decay = 0;
  bool decay_1d = true;
  GroupsConfig groups{};
};

void visit(config::Visitor& visitor, AdagradConfig& config);
void visit(config::Visitor& visitor, AdadeltaConfig& config);
void visit(config::Visitor& visitor, RmspropConfig& config);

/// State: "sum.NAME" (v) for each parameter and "step" (t), fp32 [parameters].
std::unique_ptr<Optimizer> make_adagrad(const AdagradConfig& config,
                                        const NamedTensors& parameters);
/// State: "square_avg.NAME" (v) and "acc_delta.NAME" (u) for each parameter.
std::unique_ptr<Optimizer> make_adadelta(const AdadeltaConfig& config,
                                         const NamedTensors& parameters);
/// State: "square_avg.NAME" (v), and where they are used "grad_avg.NAME" (c) and
/// "momentum.NAME" (b), for each parameter.
std::unique_ptr<Optimizer> make_rmsprop(const RmspropConfig& config,
                                        const NamedTensors& parameters);

}  // namespace gallop::optim
