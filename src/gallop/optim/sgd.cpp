#include "gallop/optim/sgd.h"

#include "gallop/base/error.h"
#include "gallop/optim/fields.h"
#include "gallop/optim/rule_optimizer.h"

namespace gallop::optim {

namespace {

void check(const SgdConfig& config) {
  if (config.nesterov && config.momentum == 0) {
    throw UsageError("sgd: nesterov is true with momentum 0; give a momentum, such as 0.9");
  }
  if (config.nesterov && config.dampening != 0) {
    throw UsageError("sgd: nesterov is true with dampening; set dampening to 0");
  }
  if (config.dampening != 0 && config.momentum == 0) {
    throw UsageError("sgd: dampening acts on momentum, which is 0; leave dampening out");
  }
}

}  // namespace

void visit(config::Visitor& visitor, SgdConfig& config) {
  visitor.field(kLearningRate, config.lr);
  visitor.field({.name = "momentum",
                 .help = "share of the last update that is kept",
                 .min = 0,
                 .max = 1,
                 .below_max = true},
                config.momentum);
  visitor.field({.name = "dampening",
                 .help = "share of the gradient that momentum leaves out",
                 .min = 0,
                 .max = 1,
                 .below_max = true},
                config.dampening);
  visitor.field({.name = "nesterov", .help = "look ahead along the momentum"}, config.nesterov);
  visitor.field(kWeightDecay, config.weight_decay);
  visitor.field(kDecay1d, config.decay_1d);
}

std::unique_ptr<Optimizer> make_sgd(const SgdConfig& config, const NamedTensors& parameters) {
  check(config);
  const bool has_momentum = config.momentum != 0;
  return make_rule_optimizer(
      {.rule = !has_momentum     ? "sgd"
               : config.nesterov ? "sgd_nesterov"
                                 : "sgd_momentum",
       .options = {config.momentum, config.dampening},
       .states = has_momentum ? std::vector<const char*>{"momentum"} : std::vector<const char*>(),
       .counts_steps = config.dampening != 0,
       .lr = config.lr,
       .weight_decay = config.weight_decay,
       .decay_1d = config.decay_1d},
      parameters);
}

}  // namespace gallop::optim
