#include "gallop/optim/schedule_free.h"

#include <utility>

#include <ATen/core/grad_mode.h>

#include "gallop/optim/fields.h"
#include "gallop/optim/rule_optimizer.h"

namespace gallop::optim {

namespace {

class ScheduleFree final : public RuleOptimizer {
 public:
  ScheduleFree(RuleConfig config, const NamedTensors& parameters)
      : RuleOptimizer(std::move(config), parameters) {
    // z is initialized with y.
    const at::NoGradGuard no_grad;
    for (size_t i = 0; i < parameters.size(); ++i) {
      all().states[0][i].tensor.copy_(parameters[i].tensor);
    }
  }

  void use_averaged_weights(bool averaged) override {
    if (averaged == !training_.empty()) return;
    const at::NoGradGuard no_grad;
    const NamedTensors &parameters = all().parameters, &z = all().states[0];
    for (size_t i = 0; i < parameters.size(); ++i) {
      const at::Tensor& parameter = parameters[i].tensor;
      if (averaged) {
        training_.push_back({"training." + parameters[i].name, parameter.detach().clone()});
        parameter.lerp_(z[i].tensor, 1 - 1 / config().options.front());
      } else {
        parameter.copy_(training_[i].tensor);
      }
    }
    if (!averaged) training_.clear();
  }

  Averaging averaging() const override { return {.kind = Averaging::Kind::kWithin}; }

  NamedTensors state() const override {
    NamedTensors state = RuleOptimizer::state();
    state.insert(state.end(), training_.begin(), training_.end());
    return state;
  }

 private:
  NamedTensors training_;  // y, while the parameters are x.
};

template <typename Config>
void visit_schedule_free(config::Visitor& visitor, Config& config) {
  visitor.field(
      {.name = "r", .help = "exponent of the step number in its averaging weight", .min = 0},
      config.r);
  visitor.field({.name = "weight_lr_power",
                 .help = "exponent of the learning rate in the averaging weight of a step",
                 .min = 0},
                config.weight_lr_power);
  visit_decay(visitor, config);
}

// Momentum defines the interpolation of x between y and z, so it cannot be scheduled.
std::unique_ptr<Optimizer> make_schedule_free(RuleConfig rule, const NamedTensors& parameters) {
  rule.running = {0, 0};
  return std::make_unique<ScheduleFree>(std::move(rule), parameters);
}

config::Field above_zero(config::Field field) {
  field.above_min = true;
  return field;
}

}  // namespace

void visit(config::Visitor& visitor, ScheduleFreeSgdConfig& config) {
  visitor.field(kLearningRate, config.lr);
  visitor.field(above_zero(kMomentum), config.momentum);
  visit_schedule_free(visitor, config);
}

void visit(config::Visitor& visitor, ScheduleFreeAdamwConfig& config) {
  visitor.field(kLearningRate, config.lr);
  visitor.field(above_zero(kBeta1), config.beta1);
  visitor.field(kBeta2, config.beta2);
  visitor.field(kEps, config.eps);
  visit_schedule_free(visitor, config);
}

std::unique_ptr<Optimizer> make_schedule_free_sgd(const ScheduleFreeSgdConfig& config,
                                                  const NamedTensors& parameters) {
  // The last two are AdamW's.
  return make_schedule_free(
      rule_of(config, "schedule_free_sgd",
              {config.momentum, config.r, config.weight_lr_power, 0, 0}, {"z"}),
      parameters);
}

std::unique_ptr<Optimizer> make_schedule_free_adamw(const ScheduleFreeAdamwConfig& config,
                                                    const NamedTensors& parameters) {
  RuleConfig rule =
      rule_of(config, "schedule_free_adamw",
              {config.beta1, config.r, config.weight_lr_power, config.beta2, config.eps},
              {"z", "exp_avg_sq"});
  rule.beta2 = 3;
  return make_schedule_free(std::move(rule), parameters);
}

}  // namespace gallop::optim
