#include "gallop/optim/sgd.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/_fused_sgd.h>

#include "gallop/base/error.h"
#include "gallop/optim/fields.h"
#include "gallop/optim/kernel_step.h"
#include "gallop/optim/parameter_group.h"

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

class Sgd final : public Optimizer {
 public:
  Sgd(const SgdConfig& config, const NamedTensors& parameters) : config_(config) {
    std::vector<NamedTensors> states;
    if (config.momentum != 0) states.push_back(make_state("momentum", parameters));
    groups_ = group_by_decay(parameters, states, config.weight_decay, config.decay_1d);
    if (!states.empty()) state_ = std::move(states.front());
    if (config.dampening != 0) {
      steps_ = make_steps(parameters);
      state_.push_back({"step", steps_});
    }
  }

  at::Tensor step(const at::Tensor& lr, const at::Tensor& grad_scale,
                  const at::Tensor& found_inf) override {
    const at::NoGradGuard no_grad;
    const SkipSignal skip(grad_scale, found_inf);
    if (has_own_kernel(groups_.front())) {
      const KernelStep all = kernel_step(groups_, steps_, lr, skip);
      return kernel::sgd(all.step, all.states.empty() ? at::TensorList() : all.states[0],
                         {.momentum = config_.momentum,
                          .dampening = config_.dampening,
                          .nesterov = config_.nesterov});
    }
    if (!steps_.defined()) {
      // A momentum of zero and no dampening make the first step like the others.
      for (const ParameterGroup& group : groups_) {
        update(with_gradients(group), lr, skip, false);
      }
      return {};
    }
    const at::Tensor host_steps = steps_.to(at::kCPU, c10::kFloat, false, /*copy=*/true);
    const float* steps = host_steps.const_data_ptr<float>();
    for (const bool first : {true, false}) {
      for (const ParameterGroup& group : groups_) {
        const ParameterGroup active =
            with_gradients(group, [&](size_t i) { return (steps[i] == 0) == first; });
        update(active, lr, skip, first);
        count_step(steps_, active.indices, skip);
      }
    }
    return {};
  }

  NamedTensors state() const override { return state_; }
  double base_lr() const override { return config_.lr; }

 private:
  void update(const ParameterGroup& active, const at::Tensor& lr, const SkipSignal& skip,
              bool first) const {
    if (active.parameters.empty()) return;
    at::_fused_sgd_(active.parameters, active.gradients,
                    active.states.empty() ? at::TensorList() : at::TensorList(active.states[0]),
                    active.weight_decay, config_.momentum, lr, config_.dampening, config_.nesterov,
                    /*maximize=*/false, first, skip.grad_scale(), skip.found_inf());
  }

  SgdConfig config_;
  std::vector<ParameterGroup> groups_;
  at::Tensor steps_;  // Undefined without dampening.
  NamedTensors state_;
};

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
  check_parameters(parameters);
  return std::make_unique<Sgd>(config, parameters);
}

}  // namespace gallop::optim
