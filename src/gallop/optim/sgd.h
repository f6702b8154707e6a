#pragma once

#include <memory>
#include <string>

#include "gallop/config/visitor.h"
#include "gallop/optim/groups.h"
#include "gallop/optim/optimizer.h"

namespace gallop::optim {

/// Stochastic gradient descent with momentum, as in PyTorch (Sutskever et al., "On the importance
/// of initialization and momentum in deep learning", ICML 2013):
///
///     g = gradient + weight_decay * p
///     m = momentum * m + (1 - dampening) * g       (m = g at a parameter's first step)
///     p = p - lr * (nesterov ? g + momentum * m : m)
struct SgdConfig {
  double lr = 0.1;
  double momentum = 0.9;
  double dampening = 0;
  bool nesterov = false;
  std::string rounding = "auto";  ///< For bf16 weights; see optim/fields.h.
  double weight_decay = 0;
  /// Apply weight decay to one-dimensional parameters, too: biases and norms.
  bool decay_1d = true;
  GroupsConfig groups{};
};

/// SGD with decoupled weight decay (Loshchilov and Hutter, "Decoupled weight decay
/// regularization", ICLR 2019): g is the gradient, and p = p - lr * weight_decay * p comes first.
struct SgdwConfig {
  double lr = 0.1;
  double momentum = 0.9;
  double dampening = 0;
  bool nesterov = false;
  std::string rounding = "auto";
  double weight_decay = 0.01;
  bool decay_1d = true;
  GroupsConfig groups{};
};

void visit(config::Visitor& visitor, SgdConfig& config);
void visit(config::Visitor& visitor, SgdwConfig& config);

/// State: "momentum.NAME" for each parameter, and with dampening "step", fp32 [parameters], in the
/// order of `parameters`. Throws UsageError for Nesterov momentum without momentum or with
/// dampening, and for dampening without momentum.
std::unique_ptr<Optimizer> make_sgd(const SgdConfig& config, const NamedTensors& parameters);
std::unique_ptr<Optimizer> make_sgdw(const SgdwConfig& config, const NamedTensors& parameters);

}  // namespace gallop::optim
