#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gallop/optim/groups.h"
#include "gallop/optim/optimizer.h"
#include "gallop/optim/optimizer_parameters.h"

// Only for sources of optim/.
namespace gallop::optim {

/// An optimizer that is a rule of kernel/update_rules.h.
struct RuleConfig {
  std::string rule{};
  std::vector<double> options{};      ///< In the order of the rule's Option.
  std::vector<const char*> states{};  ///< Names of the rule's states.
  double initial_state = 0;
  bool keeps_8_bits = false;  ///< See OptimizerParameters::keep_in_8_bits().
  std::string rounding{};     ///< See OptimizerParameters::round_by(); empty where it cannot.
  /// Which of `options` these are; none where the rule has none that may vary.
  std::optional<int64_t> momentum{}, beta2{};
  bool counts_steps = true;       ///< Whether the rule asks for the step.
  std::vector<double> running{};  ///< What the rule's running numbers are at first.

  double lr = 0;
  double weight_decay = 0;
  bool decay_1d = true;
  GroupsConfig groups{};
};

/// An option of those that can round.
template <typename Config>
std::string rounding_of(const Config& config) {
  if constexpr (requires { config.rounding; }) return config.rounding;
  return {};
}

/// With the learning rate, weight decay and groups of an optimizer's own config.
template <typename Config>
RuleConfig rule_of(const Config& config, const std::string& rule,
                   const std::vector<double>& options, const std::vector<const char*>& states) {
  return {.rule = rule,
          .options = options,
          .states = states,
          .rounding = rounding_of(config),
          .lr = config.lr,
          .weight_decay = config.weight_decay,
          .decay_1d = config.decay_1d,
          .groups = config.groups};
}

/// State: "STATE.NAME" for each kind and parameter, "step", fp32 [parameters], where steps are
/// counted, and "running", fp64 [parameters, numbers], where the rule has such, in the order of
/// `parameters`. States in 8 bits are uint8 (codes of kernel::StateMap), and "scales.NAME", fp32
/// [states, blocks], comes behind all of them, or "scales_channels_last.NAME": blocks follow the
/// order of memory. Kahan's summation has "compensation.NAME", bf16, for each parameter in bf16.
class RuleOptimizer : public Optimizer {
 public:
  RuleOptimizer(RuleConfig config, const NamedTensors& parameters);

  at::Tensor step(const at::Tensor& lr, const at::Tensor& grad_scale, const at::Tensor& found_inf,
                  const ScheduledOptions& scheduled) override;
  bool can_schedule(ScheduledOption option) const override;
  NamedTensors state() const override;
  double base_lr() const override { return config_.lr; }

 protected:
  const RuleConfig& config() const { return config_; }
  const OptimizerParameters& all() const { return all_; }

 private:
  RuleConfig config_;
  OptimizerParameters all_;
  at::Tensor steps_, running_;  // Undefined where they are not needed.
};

std::unique_ptr<Optimizer> make_rule_optimizer(RuleConfig config, const NamedTensors& parameters);

}  // namespace gallop::optim
