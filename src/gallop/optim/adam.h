#pragma once

#include <memory>
#include <string>

#include "gallop/config/visitor.h"
#include "gallop/optim/groups.h"
#include "gallop/optim/optimizer.h"

namespace gallop::optim {

/// Adam (Kingma and Ba, "Adam: a method for stochastic optimization", ICLR 2015), as in PyTorch,
/// with t counted from 1; AMSGrad (Reddi et al., "On the convergence of Adam and beyond", ICLR
/// 2018) uses the maximum of all v so far in the last line:
///
///     g = gradient + weight_decay * p
///     m = beta1 * m + (1 - beta1) * g,  v = beta2 * v + (1 - beta2) * g * g
///     p = p - lr * m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps)
struct AdamConfig {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  bool amsgrad = false;
  std::string state_bits = "32";  ///< Or 8; see optim/fields.h.
  std::string rounding = "auto";  ///< For bf16 weights; see optim/fields.h.
  double weight_decay = 0;
  /// Apply weight decay to one-dimensional parameters, too: biases and norms.
  bool decay_1d = true;
  GroupsConfig groups{};
};

/// Adam with decoupled weight decay (Loshchilov and Hutter, "Decoupled weight decay
/// regularization", ICLR 2019): g is the gradient, and p = p - lr * weight_decay * p comes first.
struct AdamwConfig {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  bool amsgrad = false;
  std::string state_bits = "32";  ///< Or 8; see optim/fields.h.
  std::string rounding = "auto";
  double weight_decay = 0.01;
  bool decay_1d = true;
  GroupsConfig groups{};
};

/// Adam with Nesterov's momentum (Dozat, "Incorporating Nesterov momentum into Adam", ICLR 2016
/// workshop), as in PyTorch, whose momentum grows by u(t) = beta1 * (1 - 0.96^(t *
/// momentum_decay) / 2). m and v as in Adam, U the product of u(1) to u(t):
///
///     d = (1 - u(t)) / (1 - U) * g + u(t + 1) / (1 - U * u(t + 1)) * m
///     p = p - lr * d / (sqrt(v / (1 - beta2^t)) + eps)
struct NadamConfig {
  double lr = 2e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double momentum_decay = 4e-3;
  bool decoupled_weight_decay = false;
  std::string rounding = "auto";
  double weight_decay = 0;
  bool decay_1d = true;
  GroupsConfig groups{};
};

/// Rectified Adam (Liu et al., "On the variance of the adaptive learning rate and beyond", ICLR
/// 2020), as in PyTorch. m and v as in Adam, n = 2 / (1 - beta2) - 1,
/// l = n - 2 * t * beta2^t / (1 - beta2^t):
///
///     r = sqrt((l - 4) * (l - 2) * n / ((n - 4) * (n - 2) * l) * (1 - beta2^t)) / (sqrt(v) + eps)
///     p = p - lr * m / (1 - beta1^t) * (l > 5 ? r : 1)
struct RadamConfig {
  double lr = 1e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  bool decoupled_weight_decay = false;
  std::string rounding = "auto";
  double weight_decay = 0;
  bool decay_1d = true;
  GroupsConfig groups{};
};

/// Adam with the infinity norm (Kingma and Ba, section 7), as in PyTorch:
///
///     g = gradient + weight_decay * p
///     m = beta1 * m + (1 - beta1) * g,  u = max(beta2 * u, |g| + eps)
///     p = p - lr / (1 - beta1^t) * m / u
struct AdamaxConfig {
  double lr = 2e-3;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  std::string rounding = "auto";
  double weight_decay = 0;
  bool decay_1d = true;
  GroupsConfig groups{};
};

void visit(config::Visitor& visitor, AdamConfig& config);
void visit(config::Visitor& visitor, AdamwConfig& config);
void visit(config::Visitor& visitor, NadamConfig& config);
void visit(config::Visitor& visitor, RadamConfig& config);
void visit(config::Visitor& visitor, AdamaxConfig& config);

/// State of all variants: "exp_avg.NAME" (m) and "exp_avg_sq.NAME" (v; Adamax: "exp_inf.NAME", u)
/// for each parameter, with AMSGrad "max_exp_avg_sq.NAME", and "step" (t), fp32 [parameters], in
/// the order of `parameters`; NAdam stores U in "running", fp64 [parameters, 1].
std::unique_ptr<Optimizer> make_adam(const AdamConfig& config, const NamedTensors& parameters);
std::unique_ptr<Optimizer> make_adamw(const AdamwConfig& config, const NamedTensors& parameters);
std::unique_ptr<Optimizer> make_nadam(const NadamConfig& config, const NamedTensors& parameters);
std::unique_ptr<Optimizer> make_radam(const RadamConfig& config, const NamedTensors& parameters);
std::unique_ptr<Optimizer> make_adamax(const AdamaxConfig& config, const NamedTensors& parameters);

}  // namespace gallop::optim
