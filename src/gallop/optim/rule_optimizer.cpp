#include "gallop/optim/rule_optimizer.h"

#include <utility>

#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include "gallop/base/error.h"
#include "gallop/kernel/plain_update.h"
#include "gallop/kernel/update_table.h"

namespace gallop::optim {

namespace {

void put(const at::Tensor& value, std::optional<int64_t> option, kernel::OptimizerStep& step) {
  if (!value.defined()) return;
  if (!option) throw InternalError("optimizer: this option cannot be scheduled");
  step.scheduled.push_back(value);
  step.scheduled_options.push_back(*option);
}

}  // namespace

RuleOptimizer::RuleOptimizer(RuleConfig config, const NamedTensors& parameters)
    : config_(std::move(config)) {
  check_parameters(parameters, !config_.rounding.empty());
  all_.parameters = parameters;
  for (const char* name : config_.states) {
    all_.states.push_back(
        make_state(name, parameters, config_.initial_state, config_.keeps_8_bits));
  }
  if (!config_.rounding.empty()) all_.round_by(config_.rounding);
  if (config_.keeps_8_bits) all_.keep_in_8_bits(config_.rule);
  all_.options = options_of(parameters, config_.weight_decay, config_.decay_1d, config_.groups);
  const auto count = static_cast<int64_t>(parameters.size());
  const auto options = at::TensorOptions(c10::kFloat).device(parameters.front().tensor.device());
  if (config_.counts_steps) steps_ = at::zeros({count}, options);
  if (!config_.running.empty()) {
    running_ = at::tensor(config_.running, at::TensorOptions(c10::kDouble))
                   .repeat({count, 1})
                   .to(options.device());
  }
}

at::Tensor RuleOptimizer::step(const at::Tensor& lr, const at::Tensor& grad_scale,
                               const at::Tensor& found_inf, const ScheduledOptions& scheduled) {
  const at::NoGradGuard no_grad;
  kernel::OptimizerStep step{.rule = config_.rule,
                             .options = config_.options,
                             .steps = steps_,
                             .running = running_,
                             .lr = lr,
                             .grad_scale = grad_scale,
                             .found_inf = found_inf};
  if (all_.draws) {
    if (!scheduled.draws.defined()) {
      throw InternalError("optimizer: stochastic rounding needs a seed and step");
    }
    step.draws = scheduled.draws;
  }
  all_.put_into(step, scheduled.weight_decay);
  put(scheduled.momentum, config_.momentum, step);
  put(scheduled.beta2, config_.beta2, step);
  if (has_own_kernel(all_.parameters)) return kernel::update(step);
  kernel::update_by_operators(step);
  return {};
}

bool RuleOptimizer::can_schedule(ScheduledOption option) const {
  switch (option) {
    case ScheduledOption::kMomentum: return config_.momentum.has_value();
    case ScheduledOption::kBeta2: return config_.beta2.has_value();
    case ScheduledOption::kWeightDecay: return true;
  }
  return false;
}

// A trust ratio follows from the norms of the whole parameter.
std::vector<UpdateUnit> RuleOptimizer::update_units() const {
  const bool is_whole = kernel::update_rule(config_.rule).measures != kernel::Measures::kNothing;
  std::vector<UpdateUnit> units;
  for (const auto& [name, tensor] : all_.parameters) {
    units.push_back({.is_whole = is_whole, .cost = static_cast<double>(tensor.numel())});
  }
  return units;
}

NamedTensors RuleOptimizer::state() const {
  NamedTensors state;
  for (const NamedTensors& kind : all_.states) state.insert(state.end(), kind.begin(), kind.end());
  for (const NamedTensor& scales : all_.scales) {
    if (scales.tensor.defined()) state.push_back(scales);
  }
  for (const NamedTensor& lost : all_.compensations) {
    if (lost.tensor.defined()) state.push_back(lost);
  }
  if (steps_.defined()) state.push_back({"step", steps_});
  if (running_.defined()) state.push_back({"running", running_});
  return state;
}

std::unique_ptr<Optimizer> make_rule_optimizer(RuleConfig config, const NamedTensors& parameters) {
  return std::make_unique<RuleOptimizer>(std::move(config), parameters);
}

}  // namespace gallop::optim
