#include "gallop/optim/lion.h"

#include "gallop/optim/fields.h"
#include "gallop/optim/rule_optimizer.h"

namespace gallop::optim {

void visit(config::Visitor& visitor, LionConfig& config) {
  visitor.field(kLearningRate, config.lr);
  visitor.field({.name = "beta1",
                 .help = "share of the mean gradient in the sign",
                 .min = 0,
                 .max = 1,
                 .below_max = true},
                config.beta1);
  visitor.field({.name = "beta2",
                 .help = "memory of the mean of the gradients",
                 .min = 0,
                 .max = 1,
                 .below_max = true},
                config.beta2);
  visitor.field(kWeightDecay, config.weight_decay);
  visitor.field(kDecay1d, config.decay_1d);
  visit_groups(visitor, config.groups);
}

std::unique_ptr<Optimizer> make_lion(const LionConfig& config, const NamedTensors& parameters) {
  return make_rule_optimizer({.rule = "lion",
                              .options = {config.beta1, config.beta2},
                              .states = {"exp_avg"},
                              .counts_steps = false,
                              .lr = config.lr,
                              .weight_decay = config.weight_decay,
                              .decay_1d = config.decay_1d,
                              .groups = config.groups},
                             parameters);
}

}  // namespace gallop::optim
