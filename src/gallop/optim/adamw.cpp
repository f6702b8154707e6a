#include "gallop/optim/adamw.h"

#include "gallop/optim/fields.h"
#include "gallop/optim/rule_optimizer.h"

namespace gallop::optim {

void visit(config::Visitor& visitor, AdamwConfig& config) {
  visitor.field(kLearningRate, config.lr);
  visitor.field({.name = "beta1",
                 .help = "memory of the mean of the gradients",
                 .min = 0,
                 .max = 1,
                 .below_max = true},
                config.beta1);
  visitor.field({.name = "beta2",
                 .help = "memory of the mean of their squares",
                 .min = 0,
                 .max = 1,
                 .below_max = true},
                config.beta2);
  visitor.field({.name = "eps", .help = "added to the divisor", .min = 0, .above_min = true},
                config.eps);
  visitor.field(kWeightDecay, config.weight_decay);
  visitor.field(kDecay1d, config.decay_1d);
}

std::unique_ptr<Optimizer> make_adamw(const AdamwConfig& config, const NamedTensors& parameters) {
  return make_rule_optimizer({.rule = "adamw",
                              .options = {config.beta1, config.beta2, config.eps},
                              .states = {"exp_avg", "exp_avg_sq"},
                              .lr = config.lr,
                              .weight_decay = config.weight_decay,
                              .decay_1d = config.decay_1d},
                             parameters);
}

}  // namespace gallop::optim
