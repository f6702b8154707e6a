#include "gallop/optim/adam.h"

#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/optim/fields.h"
#include "gallop/optim/rule_optimizer.h"

namespace gallop::optim {

namespace {

// Fields common to all variants of Adam.
template <typename Config>
void visit_adam(config::Visitor& visitor, Config& config) {
  visitor.field(kLearningRate, config.lr);
  visitor.field(kBeta1, config.beta1);
  visitor.field(kBeta2, config.beta2);
  visitor.field(kEps, config.eps);
}

const config::Field kAmsgrad{.name = "amsgrad",
                             .help = "use the maximum of all second moments so far (AMSGrad)"};

template <typename Config>
RuleConfig adam_rule(const std::string& rule, const Config& config) {
  RuleConfig all =
      rule_of(config, rule, {config.beta1, config.beta2, config.eps}, {"exp_avg", "exp_avg_sq"});
  all.momentum = 0;
  all.beta2 = 1;
  return all;
}

template <typename Config>
RuleConfig with_amsgrad(const std::string& rule, const Config& config) {
  RuleConfig all = adam_rule(config.amsgrad ? rule + "_amsgrad" : rule, config);
  if (config.amsgrad) all.states.push_back("max_exp_avg_sq");
  all.keeps_8_bits = config.state_bits == "8";
  if (config.amsgrad && all.keeps_8_bits) {
    throw UsageError(
        fmt::format("{}: amsgrad is not supported with state_bits 8, as the maximum would "
                    "accumulate rounding errors; reset "
                    "one of them",
                    rule));
  }
  return all;
}

}  // namespace

void visit(config::Visitor& visitor, AdamConfig& config) {
  visit_adam(visitor, config);
  visitor.field(kAmsgrad, config.amsgrad);
  visitor.field(kStateBits, config.state_bits);
  visit_decay(visitor, config);
}

void visit(config::Visitor& visitor, AdamwConfig& config) {
  visit_adam(visitor, config);
  visitor.field(kAmsgrad, config.amsgrad);
  visitor.field(kStateBits, config.state_bits);
  visit_decay(visitor, config);
}

void visit(config::Visitor& visitor, NadamConfig& config) {
  visit_adam(visitor, config);
  visitor.field({.name = "momentum_decay", .help = "momentum decay (NAdam)", .min = 0},
                config.momentum_decay);
  visitor.field(kDecoupledDecay, config.decoupled_weight_decay);
  visit_decay(visitor, config);
}

void visit(config::Visitor& visitor, RadamConfig& config) {
  visit_adam(visitor, config);
  visitor.field(kDecoupledDecay, config.decoupled_weight_decay);
  visit_decay(visitor, config);
}

void visit(config::Visitor& visitor, AdamaxConfig& config) {
  visit_adam(visitor, config);
  visit_decay(visitor, config);
}

std::unique_ptr<Optimizer> make_adam(const AdamConfig& config, const NamedTensors& parameters) {
  return make_rule_optimizer(with_amsgrad("adam", config), parameters);
}

std::unique_ptr<Optimizer> make_adamw(const AdamwConfig& config, const NamedTensors& parameters) {
  return make_rule_optimizer(with_amsgrad("adamw", config), parameters);
}

std::unique_ptr<Optimizer> make_nadam(const NadamConfig& config, const NamedTensors& parameters) {
  RuleConfig rule = adam_rule("nadam", config);
  rule.options.push_back(config.momentum_decay);
  rule.options.push_back(config.decoupled_weight_decay ? 1 : 0);
  rule.running = {1};
  return make_rule_optimizer(std::move(rule), parameters);
}

std::unique_ptr<Optimizer> make_radam(const RadamConfig& config, const NamedTensors& parameters) {
  RuleConfig rule = adam_rule("radam", config);
  rule.options.push_back(config.decoupled_weight_decay ? 1 : 0);
  return make_rule_optimizer(std::move(rule), parameters);
}

std::unique_ptr<Optimizer> make_adamax(const AdamaxConfig& config, const NamedTensors& parameters) {
  RuleConfig rule = adam_rule("adamax", config);
  rule.states[1] = "exp_inf";
  return make_rule_optimizer(std::move(rule), parameters);
}

}  // namespace gallop::optim
