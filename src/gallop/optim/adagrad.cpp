#include "gallop/optim/adagrad.h"

#include <utility>

#include "gallop/optim/fields.h"
#include "gallop/optim/rule_optimizer.h"

namespace gallop::optim {

void visit(config::Visitor& visitor, AdagradConfig& config) {
  visitor.field(kLearningRate, config.lr);
  visitor.field({.name = "lr_decay", .help = "learning rate decay", .min = 0}, config.lr_decay);
  visitor.field(kEps, config.eps);
  visitor.field({.name = "initial_accumulator_value",
                 .help = "initial value of the sum of squared gradients",
                 .min = 0},
                config.initial_accumulator_value);
  visit_decay(visitor, config);
}

void visit(config::Visitor& visitor, AdadeltaConfig& config) {
  visitor.field(kLearningRate, config.lr);
  visitor.field(share_field("rho", "decay rate of the average of squared gradients"), config.rho);
  visitor.field(kEps, config.eps);
  visit_decay(visitor, config);
}

void visit(config::Visitor& visitor, RmspropConfig& config) {
  visitor.field(kLearningRate, config.lr);
  visitor.field(share_field("alpha", "smoothing constant of the average of squared gradients"),
                config.alpha);
  visitor.field(kEps, config.eps);
  visitor.field(kMomentum, config.momentum);
  visitor.field({.name = "centered", .help = "normalize by the centered second moment (variance)"},
                config.centered);
  visit_decay(visitor, config);
}

std::unique_ptr<Optimizer> make_adagrad(const AdagradConfig& config,
                                        const NamedTensors& parameters) {
  RuleConfig rule = rule_of(config, "adagrad", {config.lr_decay, config.eps}, {"sum"});
  rule.initial_state = config.initial_accumulator_value;
  return make_rule_optimizer(std::move(rule), parameters);
}

std::unique_ptr<Optimizer> make_adadelta(const AdadeltaConfig& config,
                                         const NamedTensors& parameters) {
  RuleConfig rule =
      rule_of(config, "adadelta", {config.rho, config.eps}, {"square_avg", "acc_delta"});
  rule.counts_steps = false;
  return make_rule_optimizer(std::move(rule), parameters);
}

std::unique_ptr<Optimizer> make_rmsprop(const RmspropConfig& config,
                                        const NamedTensors& parameters) {
  RuleConfig rule =
      rule_of(config, "rmsprop", {config.alpha, config.eps, config.momentum}, {"square_avg"});
  rule.counts_steps = false;
  if (config.centered) {
    rule.rule += "_centered";
    rule.states.push_back("grad_avg");
  }
  if (config.momentum != 0) {
    rule.rule += "_momentum";
    rule.states.push_back("momentum");
    rule.momentum = 2;
  }
  return make_rule_optimizer(std::move(rule), parameters);
}

}  // namespace gallop::optim
