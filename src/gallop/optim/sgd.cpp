#include "gallop/optim/sgd.h"

#include <utility>

#include <fmt/format.h>

#include "gallop/base/error.h"
#include "gallop/optim/fields.h"
#include "gallop/optim/rule_optimizer.h"

namespace gallop::optim {

namespace {

template <typename Config>
void check(const char* name, const Config& config) {
  if (config.nesterov && config.momentum == 0) {
    throw UsageError(fmt::format("{}: nesterov requires a momentum above 0, such as 0.9", name));
  }
  if (config.nesterov && config.dampening != 0) {
    throw UsageError(fmt::format("{}: nesterov requires zero dampening; set dampening to 0", name));
  }
  if (config.dampening != 0 && config.momentum == 0) {
    throw UsageError(
        fmt::format("{}: dampening requires a momentum above 0; omit dampening", name));
  }
}

template <typename Config>
void visit_sgd(config::Visitor& visitor, Config& config) {
  visitor.field(kLearningRate, config.lr);
  visitor.field(kMomentum, config.momentum);
  visitor.field(share_field("dampening", "dampening of the momentum"), config.dampening);
  visitor.field(kNesterov, config.nesterov);
  visit_decay(visitor, config);
}

template <typename Config>
std::unique_ptr<Optimizer> make(const char* name, const Config& config,
                                const NamedTensors& parameters) {
  check(name, config);
  RuleConfig rule = rule_of(config, name, {config.momentum, config.dampening}, {});
  rule.counts_steps = config.dampening != 0;
  if (config.momentum != 0) {
    rule.rule += config.nesterov ? "_nesterov" : "_momentum";
    rule.states = {"momentum"};
    rule.momentum = 0;
  }
  return make_rule_optimizer(std::move(rule), parameters);
}

}  // namespace

void visit(config::Visitor& visitor, SgdConfig& config) { visit_sgd(visitor, config); }
void visit(config::Visitor& visitor, SgdwConfig& config) { visit_sgd(visitor, config); }

std::unique_ptr<Optimizer> make_sgd(const SgdConfig& config, const NamedTensors& parameters) {
  return make("sgd", config, parameters);
}

std::unique_ptr<Optimizer> make_sgdw(const SgdwConfig& config, const NamedTensors& parameters) {
  return make("sgdw", config, parameters);
}

}  // namespace gallop::optim
