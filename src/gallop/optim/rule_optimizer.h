#pragma once

#include <optional>
#include <string>
#include <vector>

#include "gallop/optim/groups.h"
#include "gallop/optim/optimizer.h"
#include "gallop/optim/optimizer_parameters.h"

// Internal to optim/.
namespace gallop::optim {

/// An optimizer defined by a rule of kernel/update_rules.h.
struct RuleConfig {
  std::string rule{};
  std::vector<double> options{};      ///< In the order of the rule's Option.
  std::vector<const char*> states{};  ///< Names of the rule's states.
  double initial_state = 0;
  bool keeps_8_bits = false;  ///< See OptimizerParameters::keep_in_8_bits().
  std::string rounding{};     ///< See OptimizerParameters::round_by(); empty if unsupported.
  /// Indices in `options`; none if the rule cannot schedule them.
  std::optional<int64_t> momentum{}, beta2{};
  bool counts_steps = true;       ///< Whether the rule needs the step count.
  std::vector<double> running{};  ///< Initial values of the rule's running scalars.

  double lr = 0;
  double weight_decay = 0;
  bool decay_1d = true;
  GroupsConfig groups{};
};

/// Adds the rounding option.
template <typename Config>
std::string rounding_of(const Config& config) {
  if constexpr (requires { config.rounding; }) return config.rounding;
  return {};
}

/// Fills in learning rate, weight decay and groups from an optimizer's config.
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

/// State: "STATE.NAME" for each kind and parameter, "step", fp32 [parameters], if steps are
/// counted, and "running", fp64 [parameters, values], if the rule has running scalars, in the order
/// of `parameters`. 8-bit states are uint8 (codes of kernel::StateMap), followed by "scales.NAME",
/// fp32 [states, blocks], or "scales_channels_last.NAME": blocks follow the memory order. Kahan
/// summation adds "compensation.NAME", bf16, for each bf16 parameter.
class RuleOptimizer : public Optimizer {
 public:
  RuleOptimizer(RuleConfig config, const NamedTensors& parameters);

  at::Tensor step(const at::Tensor& lr, const at::Tensor& grad_scale, const at::Tensor& found_inf,
                  const ScheduledOptions& scheduled) override;
  bool can_schedule(ScheduledOption option) const override;
  NamedTensors state() const override;
  double base_lr() const override { return config_.lr; }
  std::vector<UpdateUnit> update_units() const override;

 protected:
  const RuleConfig& config() const { return config_; }
  const OptimizerParameters& all() const { return all_; }

 private:
  RuleConfig config_;
  OptimizerParameters all_;
  at::Tensor steps_, running_;  // Undefined if not needed.
};

std::unique_ptr<Optimizer> make_rule_optimizer(RuleConfig config, const NamedTensors& parameters);

}  // namespace gallop::optim
