#include "gallop/optim/adamw.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_adamw.h>

#include "gallop/optim/fields.h"
#include "gallop/optim/kernel_step.h"
#include "gallop/optim/parameter_group.h"

namespace gallop::optim {

namespace {

class Adamw final : public Optimizer {
 public:
  Adamw(const AdamwConfig& config, const NamedTensors& parameters) : config_(config) {
    const std::vector<NamedTensors> states = {make_state("exp_avg", parameters),
                                              make_state("exp_avg_sq", parameters)};
    groups_ = group_by_decay(parameters, states, config.weight_decay, config.decay_1d);
    steps_ = make_steps(parameters);
    for (size_t i = 0; i < parameters.size(); ++i) {
      step_of_.push_back(steps_.select(0, static_cast<int64_t>(i)));
    }
    for (const NamedTensors& kind : states) state_.insert(state_.end(), kind.begin(), kind.end());
    state_.push_back({"step", steps_});
  }

  at::Tensor step(const at::Tensor& lr, const at::Tensor& grad_scale,
                  const at::Tensor& found_inf) override {
    const at::NoGradGuard no_grad;
    const SkipSignal skip(grad_scale, found_inf);
    if (has_own_kernel(groups_.front())) {
      const KernelStep all = kernel_step(groups_, steps_, lr, skip);
      return kernel::adamw(all.step, all.states[0], all.states[1],
                           {.beta1 = config_.beta1, .beta2 = config_.beta2, .eps = config_.eps});
    }
    for (const ParameterGroup& group : groups_) {
      const ParameterGroup active = with_gradients(group);
      if (active.parameters.empty()) continue;
      count_step(steps_, active.indices, skip);
      std::vector<at::Tensor> counts;
      counts.reserve(active.indices.size());
      for (const size_t i : active.indices) counts.push_back(step_of_[i]);
      at::_fused_adamw_(active.parameters, active.gradients, active.states[0], active.states[1],
                        /*max_exp_avg_sqs=*/{}, counts, lr, config_.beta1, config_.beta2,
                        active.weight_decay, config_.eps, /*amsgrad=*/false, /*maximize=*/false,
                        skip.grad_scale(), skip.found_inf());
    }
    return {};
  }

  NamedTensors state() const override { return state_; }
  double base_lr() const override { return config_.lr; }

 private:
  AdamwConfig config_;
  std::vector<ParameterGroup> groups_;
  at::Tensor steps_;
  std::vector<at::Tensor> step_of_;  // Views of steps_, one a parameter.
  NamedTensors state_;
};

}  // namespace

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
  check_parameters(parameters);
  return std::make_unique<Adamw>(config, parameters);
}

}  // namespace gallop::optim
