#include "gallop/optim/lion.h"

#include <utility>

#include "gallop/optim/fields.h"
#include "gallop/optim/rule_optimizer.h"

namespace gallop::optim {

void visit(config::Visitor& visitor, LionConfig& config) {
  visitor.field(kLearningRate, config.lr);
  visitor.field(
      share_field("beta1", "interpolation factor between momentum and gradient in the update"),
      config.beta1);
  visitor.field(share_field("beta2", "decay rate of the first moment"), config.beta2);
  visitor.field(kStateBits, config.state_bits);
  visit_decay(visitor, config);
}

std::unique_ptr<Optimizer> make_lion(const LionConfig& config, const NamedTensors& parameters) {
  RuleConfig rule = rule_of(config, "lion", {config.beta1, config.beta2}, {"exp_avg"});
  rule.momentum = 0;
  rule.beta2 = 1;
  rule.counts_steps = false;
  rule.keeps_8_bits = config.state_bits == "8";
  return make_rule_optimizer(std::move(rule), parameters);
}

}  // namespace gallop::optim
