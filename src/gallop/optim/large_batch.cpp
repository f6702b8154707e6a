#include "gallop/optim/large_batch.h"

#include "gallop/optim/fields.h"
#include "gallop/optim/rule_optimizer.h"

namespace gallop::optim {

void visit(config::Visitor& visitor, LarsConfig& config) {
  visitor.field(kLearningRate, config.lr);
  visitor.field(kMomentum, config.momentum);
  visitor.field({.name = "trust_coefficient",
                 .help = "length of a step as a share of the parameter's",
                 .min = 0,
                 .above_min = true},
                config.trust_coefficient);
  visitor.field(kEps, config.eps);
  visitor.field(kAlwaysAdapt, config.always_adapt);
  visitor.field(kWeightDecay, config.weight_decay);
  visitor.field(kDecay1d, config.decay_1d);
  visit_groups(visitor, config.groups);
}

void visit(config::Visitor& visitor, LambConfig& config) {
  visitor.field(kLearningRate, config.lr);
  visitor.field(kBeta1, config.beta1);
  visitor.field(kBeta2, config.beta2);
  visitor.field(kEps, config.eps);
  visitor.field(kAlwaysAdapt, config.always_adapt);
  visitor.field(kWeightDecay, config.weight_decay);
  visitor.field(kDecay1d, config.decay_1d);
  visit_groups(visitor, config.groups);
}

std::unique_ptr<Optimizer> make_lars(const LarsConfig& config, const NamedTensors& parameters) {
  return make_rule_optimizer({.rule = "lars",
                              .options = {config.momentum, config.trust_coefficient, config.eps,
                                          config.always_adapt ? 1.0 : 0.0},
                              .states = {"momentum"},
                              .counts_steps = false,
                              .lr = config.lr,
                              .weight_decay = config.weight_decay,
                              .decay_1d = config.decay_1d,
                              .groups = config.groups},
                             parameters);
}

std::unique_ptr<Optimizer> make_lamb(const LambConfig& config, const NamedTensors& parameters) {
  return make_rule_optimizer(
      {.rule = "lamb",
       .options = {config.beta1, config.beta2, config.eps, config.always_adapt ? 1.0 : 0.0},
       .states = {"exp_avg", "exp_avg_sq"},
       .lr = config.lr,
       .weight_decay = config.weight_decay,
       .decay_1d = config.decay_1d,
       .groups = config.groups},
      parameters);
}

}  // namespace gallop::optim
