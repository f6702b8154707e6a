#include "gallop/optim/large_batch.h"

#include <utility>

#include "gallop/optim/fields.h"
#include "gallop/optim/rule_optimizer.h"

namespace gallop::optim {

void visit(config::Visitor& visitor, LarsConfig& config) {
  visitor.field(kLearningRate, config.lr);
  visitor.field(kMomentum, config.momentum);
  visitor.field({.name = "trust_coefficient",
                 .help = "trust coefficient: ratio of the update's norm to the parameter's",
                 .min = 0,
                 .above_min = true},
                config.trust_coefficient);
  visitor.field(kEps, config.eps);
  visitor.field(kAlwaysAdapt, config.always_adapt);
  visit_decay(visitor, config);
}

void visit(config::Visitor& visitor, LambConfig& config) {
  visitor.field(kLearningRate, config.lr);
  visitor.field(kBeta1, config.beta1);
  visitor.field(kBeta2, config.beta2);
  visitor.field(kEps, config.eps);
  visitor.field(kAlwaysAdapt, config.always_adapt);
  visit_decay(visitor, config);
}

std::unique_ptr<Optimizer> make_lars(const LarsConfig& config, const NamedTensors& parameters) {
  RuleConfig rule = rule_of(
      config, "lars",
      {config.momentum, config.trust_coefficient, config.eps, config.always_adapt ? 1.0 : 0.0},
      {"momentum"});
  rule.momentum = 0;
  rule.counts_steps = false;
  return make_rule_optimizer(std::move(rule), parameters);
}

std::unique_ptr<Optimizer> make_lamb(const LambConfig& config, const NamedTensors& parameters) {
  RuleConfig rule = rule_of(
      config, "lamb", {config.beta1, config.beta2, config.eps, config.always_adapt ? 1.0 : 0.0},
      {"exp_avg", "exp_avg_sq"});
  rule.momentum = 0;
  rule.beta2 = 1;
  return make_rule_optimizer(std::move(rule), parameters);
}

}  // namespace gallop::optim
