#include "gallop/optim/adagrad.h"

#include <utility>

#include "gallop/optim/fields.h"
#include "gallop/optim/rule_optimizer.h"

namespace gallop::optim {

void visit(config::Visitor& visitor, AdagradConfig& config) {
  visitor.field(kLearningRate, config.lr);
  visitor.field(
      {.name = "lr_decay", .help = "how fast the learning rate falls by itself", .min = 0},
      config.lr_decay);
  visitor.field(kEps, config.eps);
  visitor.field({.name = "initial_accumulator_value",
                 .help = "sum of squares before the first step",
                 .min = 0},
                config.initial_accumulator_value);
  visitor.field(kWeightDecay, config.weight_decay);
  visitor.field(kDecay1d, config.decay_1d);
  visit_groups(visitor, config.groups);
}

void visit(config::Visitor& visitor, AdadeltaConfig& config) {
  visitor.field(kLearningRate, config.lr);
  visitor.field(
      {.name = "rho", .help = "memory of the mean squares", .min = 0, .max = 1, .below_max = true},
      config.rho);
  visitor.field(kEps, config.eps);
  visitor.field(kWeightDecay, config.weight_decay);
  visitor.field(kDecay1d, config.decay_1d);
  visit_groups(visitor, config.groups);
}

void visit(config::Visitor& visitor, RmspropConfig& config) {
  visitor.field(kLearningRate, config.lr);
  visitor.field({.name = "alpha",
                 .help = "memory of the mean of the squares",
                 .min = 0,
                 .max = 1,
                 .below_max = true},
                config.alpha);
  visitor.field(kEps, config.eps);
  visitor.field(kMomentum, config.momentum);
  visitor.field({.name = "centered", .help = "divide by the spread around the mean gradient"},
                config.centered);
  visitor.field(kWeightDecay, config.weight_decay);
  visitor.field(kDecay1d, config.decay_1d);
  visit_groups(visitor, config.groups);
}

std::unique_ptr<Optimizer> make_adagrad(const AdagradConfig& config,
                                        const NamedTensors& parameters) {
  return make_rule_optimizer({.rule = "adagrad",
                              .options = {config.lr_decay, config.eps},
                              .states = {"sum"},
                              .initial_state = config.initial_accumulator_value,
                              .lr = config.lr,
                              .weight_decay = config.weight_decay,
                              .decay_1d = config.decay_1d,
                              .groups = config.groups},
                             parameters);
}

std::unique_ptr<Optimizer> make_adadelta(const AdadeltaConfig& config,
                                         const NamedTensors& parameters) {
  return make_rule_optimizer({.rule = "adadelta",
                              .options = {config.rho, config.eps},
                              .states = {"square_avg", "acc_delta"},
                              .counts_steps = false,
                              .lr = config.lr,
                              .weight_decay = config.weight_decay,
                              .decay_1d = config.decay_1d,
                              .groups = config.groups},
                             parameters);
}

std::unique_ptr<Optimizer> make_rmsprop(const RmspropConfig& config,
                                        const NamedTensors& parameters) {
  RuleConfig rule{.rule = "rmsprop",
                  .options = {config.alpha, config.eps, config.momentum},
                  .states = {"square_avg"},
                  .counts_steps = false,
                  .lr = config.lr,
                  .weight_decay = config.weight_decay,
                  .decay_1d = config.decay_1d,
                  .groups = config.groups};
  if (config.centered) {
    rule.rule += "_centered";
    rule.states.push_back("grad_avg");
  }
  if (config.momentum != 0) {
    rule.rule += "_momentum";
    rule.states.push_back("momentum");
  }
  return make_rule_optimizer(std::move(rule), parameters);
}

}  // namespace gallop::optim
